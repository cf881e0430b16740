package daemon

import (
	"reflect"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// TestUnpinnedConfig: the configuration of a cluster that is not pinned does not count, and a Problem
// says so.
func TestUnpinnedConfig(t *testing.T) {
	names := func(list ...clustermesh.ClusterName) []clustermesh.ClusterName { return list }
	for what, c := range map[string]struct {
		members []clustermesh.ClusterName
		want    []string
	}{
		"pinned":     {names("own", "c1", "c2"), nil},
		"one is not": {names("own", "c2"), []string{"cluster c1"}},
		"no pins":    {nil, []string{"cluster c1", "cluster c2"}},
	} {
		var got []string
		for _, p := range unpinnedConfig(names("c1", "c2"), c.members) {
			if got = append(got, p.Object); p.Code != problem.ConfigNotPinned || p.Try == "" || p.Warning {
				t.Errorf("%s: %+v", what, p)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: problems of %q, want %q", what, got, c.want)
		}
	}
}

// TestUnknownConfig: a cluster is unknown while it is pinned and has said nothing yet.
func TestUnknownConfig(t *testing.T) {
	d := &Daemon{trust: trusted{members: []clustermesh.ClusterName{"own", "said", "silent"}}}
	d.who.Cluster = "own"
	d.config.Source.Kubernetes = &KubernetesConfig{AcceptConfigFrom: []clustermesh.ClusterName{"own", "said", "silent", "evicted"}}
	s := clustermesh.State{Records: map[clustermesh.Origin]clustermesh.Record{{Cluster: "said"}: {}, {Cluster: "silent", Node: "n"}: {}}}
	if got := d.unknownConfig(s); !slices.Equal(got, []clustermesh.ClusterName{"silent"}) {
		t.Errorf("unknown %v", got)
	}
	if from := (Config{}).configFrom("own"); from != nil {
		t.Errorf("without an API server: %v", from)
	}
}

// TestElsewhere: a config cluster sees by the exports of others which of them obey.
func TestElsewhere(t *testing.T) {
	by := func(policies ...string) (r clustermesh.Record) {
		for _, p := range policies {
			r.Content.Exports = append(r.Content.Exports, clustermesh.Export{Policy: p})
		}
		return r
	}
	s := clustermesh.State{Records: map[clustermesh.Origin]clustermesh.Record{
		{Cluster: "c1"}: by("shop/cart", "c1/shop/own"), {Cluster: "c3"}: by("c1/shop/cart"),
		{Cluster: "c2"}: by("c1/shop/cart", "c1/shop/web", "c3/shop/cart", "c10/shop/cart", ""),
	}}
	if got, want := elsewhere(s, "c1"), map[string][]string{"c1/shop/cart": {"c2", "c3"}, "c1/shop/web": {"c2"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
