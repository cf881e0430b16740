package gke

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// said is what cluster hub says that has the objects.
func said(t *testing.T, texts ...string) clustermesh.ClusterConfig {
	t.Helper()
	objs := read(t, texts...)
	objs.Config.Cluster = "hub"
	return clustermesh.ClusterConfig{Cluster: "hub", Objects: object.Local(objs).Config}
}

func read(t *testing.T, texts ...string) (objs object.Objects) {
	t.Helper()
	for _, text := range texts {
		var o unstructured.Unstructured
		json, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = o.UnmarshalJSON(json)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range object.Kinds {
			if k.Name == o.GetKind() && k.GroupResource().Group == "networking.gke.io" {
				kept, _ := k.Keep(&o, "")
				objs.Insert(kept)
			}
		}
	}
	return objs
}

// obeying is what the leader of east knows when it accepts the configuration of hub, and its cluster has
// the objects, and the namespace.
func obeying(t *testing.T, hub clustermesh.ClusterConfig, own ...string) View {
	t.Helper()
	v := viewOf(t)
	objs := read(t, own...)
	objs.Config.Cluster = "east"
	for _, k := range object.ReadConfig(hub) {
		objs.Insert(k)
	}
	v.GKE, v.Namespaces = object.ReadGKE(objs), map[string]bool{"whereami": true}
	return v
}

// TestConfigCluster: what is made for the objects of a config cluster, and goes with them.
func TestConfigCluster(t *testing.T) {
	listing := strings.Replace(whereami, "spec:\n", "spec:\n  clusters: [{link: us/hub}]\n", 1)
	const service, ingress = "Service whereami/" + derived, "Ingress whereami/whereami-ingress"
	missing := func(v *View) { v.Namespaces = map[string]bool{"other": true} }
	unknown := func(v *View) { v.Unknown = []clustermesh.ClusterName{"hub"} }
	var w world
	for _, c := range []struct {
		what     string
		hub, own []string
		change   func(*View)
		want     []string
	}{
		{what: "without the namespace", hub: []string{whereami, front}, change: missing},
		{what: "both", hub: []string{whereami, front}, want: []string{"create " + service, "create " + ingress}},
		{what: "the same again", hub: []string{whereami, front}},
		{what: "another class", hub: []string{whereami, strings.Replace(front, "traefik", "nginx", 1)}, want: []string{"update " + ingress}},
		{what: "nothing is known", change: unknown},
		{what: "known again", hub: []string{whereami, front}, want: []string{"update " + ingress}},
		{what: "not listed", hub: []string{listing, front}, want: []string{"update " + ingress, "delete " + service}},
		{what: "listed again", hub: []string{whereami, front}, want: []string{"create " + service, "update " + ingress}},
		{what: "its own goes before", hub: []string{whereami, front}, own: []string{whereami}, want: []string{"update " + service}},
		{what: "its own is gone", hub: []string{whereami, front}, want: []string{"update " + service}},
		{what: "no Ingress", hub: []string{whereami}, want: []string{"delete " + ingress}},
		{what: "gone", want: []string{"delete " + service}},
	} {
		v := obeying(t, said(t, c.hub...), c.own...)
		if c.change != nil {
			c.change(&v)
		}
		if did := w.settle(t, v); !slices.Equal(did, c.want) {
			t.Errorf("%s: %q, want %q", c.what, did, c.want)
		}
		for _, s := range w.Services {
			own := len(c.own) > 0
			if from := s.Labels[object.LabelConfigCluster]; !Ours(s.Labels) || own != (from == "") || own != (len(s.OwnerReferences) == 1) {
				t.Errorf("%s: labels %v, owners %v", c.what, s.Labels, s.OwnerReferences)
			}
		}
	}
	// Unknown is one cluster, not all.
	w.settle(t, obeying(t, said(t, whereami)))
	v := obeying(t, clustermesh.ClusterConfig{Cluster: "hub"})
	v.Unknown = []clustermesh.ClusterName{"other"}
	if did := w.settle(t, v); !slices.Equal(did, []string{"delete " + service}) {
		t.Errorf("%q", did)
	}
}

// TestConfigStatuses: the status of an object is written where it is, and says which other clusters it
// reaches.
func TestConfigStatuses(t *testing.T) {
	if got := Statuses(obeying(t, said(t, whereami, front)), Have{}, nil, time.Unix(1000, 0)); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{
		whereami: "Service whereami/" + derived + " selects pods of this cluster, east",
		strings.Replace(whereami, "spec:\n", "spec:\n  clusters: [{link: us/west}]\n", 1): "spec.clusters does not list this cluster, east",
	} {
		v := viewOf(t, text)
		v.Elsewhere = map[string][]string{"east/whereami/whereami-mcs": {"north", "west"}, "whereami/whereami-mcs": {"no"}}
		got := Statuses(v, Have{}, nil, time.Unix(1000, 0))
		if want += "; by this object, the same Service selects pods of north, west"; len(got) != 1 || got[0].Status.Conditions[0].Message != want {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}
