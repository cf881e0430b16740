package object

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/internal/problem"
)

// saidBy is what a cluster says that has the objects.
func saidBy(c clustermesh.ClusterName, all ...*unstructured.Unstructured) (clustermesh.ClusterConfig, clustermesh.Local) {
	objs := Objects{Config: Config{Cluster: c}}
	for _, o := range all {
		if o.GetKind() == "MultiClusterService" {
			objs.Insert(multiServiceFrom(o))
		} else {
			objs.Insert(multiIngressFrom(o))
		}
	}
	l := Local(objs)
	return clustermesh.ClusterConfig{Cluster: c, Objects: l.Config}, l
}

func named(o *unstructured.Unstructured, name string) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetName(name)
	return o
}

// TestConfigTravels: what a config cluster has means the same where it is accepted, and is not passed on.
func TestConfigTravels(t *testing.T) {
	service := annotatedWith(multiService(with(linking("us/east", "us/west"), []any{
		map[string]any{"name": "web", "port": int64(80), "targetPort": "http"},
	}, "template", "spec", "ports")), annotationProtocols, `{"web": "HTTPS"}`)
	ingress := annotatedWith(multiIngress(backend("cart", int64(80))), AnnotationIngressClass, "traefik")
	said, local := saidBy("east", service, ingress)
	if len(said.Objects) != 2 || len(local.Problems) > 0 {
		t.Fatalf("%+v, %v", said, local.Problems)
	}
	if _, problems := record.Usable(clustermesh.Origin{Cluster: "east"}, clustermesh.Content{Config: said.Objects}); len(problems) > 0 {
		t.Errorf("other clusters leave it out: %v", problems)
	}
	objs := Objects{Config: Config{Cluster: "west"}}
	for _, k := range ReadConfig(said) {
		objs.Insert(k)
	}
	derived := derivedOf(derivedLabels)
	objs.Insert(serviceFrom(derived))
	g, l := ReadGKE(objs), Local(objs)
	if len(g.Services) != 1 || len(g.Ingresses) != 1 || len(l.Config) != 0 || len(l.Problems) > 0 {
		t.Fatalf("%+v, passed on: %v, %v", g, l.Config, l.Problems)
	}
	s, was := g.Services[0], multiServiceFrom(service)
	if !reflect.DeepEqual(s.Ports, was.Ports) || fmt.Sprint(s.Selector, s.links) != fmt.Sprint(was.Selector, was.links) || s.From != "east" || s.Title() != "east/shop/cart" || !s.Lists("west") {
		t.Errorf("%+v, was %+v", s, was)
	}
	i := g.Ingresses[0]
	if *i.Spec.IngressClassName != "traefik" || i.From != "east" || i.Standard(g, func(MultiService) string { return "x" }).DefaultBackend.Service.Name != "x" {
		t.Errorf("%+v", i)
	}
	if len(l.Exports) != 1 || l.Exports[0].Policy != "east/shop/cart" {
		t.Errorf("exports %+v", l.Exports)
	}
	if _, problems := record.Usable(clustermesh.Origin{Cluster: "west"}, clustermesh.Content{Exports: l.Exports}); len(problems) > 0 {
		t.Errorf("other clusters leave the export out: %v", problems)
	}
}

// TestConfigIsFine: an object that does nothing in its own cluster says nothing to others.
func TestConfigIsFine(t *testing.T) {
	for what, all := range map[string][]*unstructured.Unstructured{
		"a mistake":   {multiService(with(selecting, "NodePort", "template", "spec", "type"))},
		"no spec":     {multiService(nil)},
		"unresolved":  {multiIngress(backend("cart", int64(80)))},
		"its backend": {multiService(with(selecting, "NodePort", "template", "spec", "type")), multiIngress(backend("cart", int64(80)))},
	} {
		if said, _ := saidBy("east", all...); len(said.Objects) > 0 {
			t.Errorf("%s: %+v", what, said)
		}
	}
	big := annotatedWith(multiService(selecting), AnnotationLocality, strings.Repeat("x", 1<<13))
	said, l := saidBy("east", big, named(multiService(selecting), "small"))
	if len(said.Objects) != 1 || said.Objects[0].Name.Name != "small" {
		t.Errorf("%+v", said)
	}
	if !slices.ContainsFunc(l.Problems, func(p clustermesh.Problem) bool {
		return p.Code == problem.ConfigUnused && p.Warning && p.Object == gkeServiceKind+" shop/cart" && strings.Contains(p.Message, "annotation")
	}) {
		t.Errorf("no Problem names that it is too large: %v", l.Problems)
	}
}

// TestConfigPrecedence: the cluster's own object goes before those of other clusters, and among them the
// first cluster's. A Problem says so of each that does not count.
func TestConfigPrecedence(t *testing.T) {
	mark := func(cluster string, names ...string) (out []*unstructured.Unstructured) {
		for _, n := range names {
			out = append(out, named(multiService(with(selecting, map[string]any{"of": cluster}, "template", "spec", "selector")), n))
		}
		return out
	}
	first, _ := saidBy("first", mark("first", "a", "b")...)
	second, _ := saidBy("second", mark("second", "a", "b", "c")...)
	objs := Objects{Config: Config{Cluster: "west"}}
	for _, k := range slices.Concat(ReadConfig(first), ReadConfig(second)) {
		objs.Insert(k)
	}
	objs.Insert(multiServiceFrom(mark("own", "a")[0])) // last, and still its own
	var got []string
	for _, s := range ReadGKE(objs).Services {
		got = append(got, s.Name+" "+s.Selector["of"])
	}
	if want := []string{"a own", "b first", "c second"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = nil
	for _, p := range Local(objs).Problems {
		got = append(got, fmt.Sprint(p.Warning, p.Object, ": ", p.Message))
	}
	want := []string{
		"true" + gkeServiceKind + " shop/a of cluster first: is not used: this cluster has one of this name, which goes before it",
		"true" + gkeServiceKind + " shop/a of cluster second: is not used: this cluster has one of this name, which goes before it",
		"true" + gkeServiceKind + " shop/b of cluster second: is not used: cluster first has one of this name, which goes before it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}

// TestConfigIsJudged: whatever another cluster says is judged as an own object is, by the names that the
// pin was asked about.
func TestConfigIsJudged(t *testing.T) {
	for what, c := range map[string]struct {
		kind, namespace, spec string
		fields                []string
	}{
		"a field":       {gkeServiceKind, "shop", `{"template":{"spec":{"type":"NodePort","selector":{"a":"b"},"ports":[{"port":1}]}}}`, []string{"spec.template.spec.type"}},
		"no JSON":       {gkeServiceKind, "shop", `{"a":1e999}`, []string{"spec"}},
		"barred":        {gkeServiceKind, "kube-system", `{"template":{"spec":{"selector":{"a":"b"},"ports":[{"port":1}]}}}`, []string{"metadata.namespace"}},
		"an Ingress":    {gkeIngressKind, "shop", `{"template":{"spec":{"backend":{"serviceName":"none","servicePort":1}}}}`, []string{"spec.template.spec.backend.serviceName"}},
		"metadata":      {gkeServiceKind, "shop", `{"metadata":{"namespace":"other"},"template":{"spec":{"selector":{"a":"b"},"ports":[{"port":1}]}}}`, []string{"spec.metadata"}},
		"another kind":  {"MultiClusterService.networking.karmada.io", "shop", `{}`, nil},
		"a newer kind":  {"MultiClusterGateway.networking.gke.io", "shop", `{}`, nil},
		"not even that": {"x", "shop", `{}`, nil},
	} {
		objs := Objects{Config: Config{Cluster: "west"}}
		for _, k := range ReadConfig(clustermesh.ClusterConfig{Cluster: "east", Objects: []clustermesh.ConfigObject{
			{Kind: c.kind, Name: clustermesh.ServiceName{Namespace: c.namespace, Name: "cart"}, Spec: c.spec, Created: -1},
		}}) {
			objs.Insert(k)
		}
		if got := fieldsOf(Local(objs).Problems, c.kind+" "+c.namespace+"/cart of cluster east"); !slices.Equal(got, c.fields) {
			t.Errorf("%s: problems with %q, want %q", what, got, c.fields)
		}
	}
}
