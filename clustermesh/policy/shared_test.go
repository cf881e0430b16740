package policy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
)

// TestMirrorOf: a mirror is known by the name that its policy gives it, with all its sources.
func TestMirrorOf(t *testing.T) {
	s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}}
	for _, c := range []clustermesh.ClusterName{"a", "b", "c"} {
		o := clustermesh.Origin{Cluster: c}
		cart := clustermesh.Export{Service: clustermesh.ServiceName{Namespace: "shop", Name: "cart"}, Policy: "stars"}
		private := clustermesh.Export{Service: clustermesh.ServiceName{Namespace: "shop", Name: "pay"}, Policy: "stars", To: []clustermesh.ClusterName{"c"}}
		s.Records = s.Records.With(o, clustermesh.Record{Origin: o, Content: clustermesh.Content{Mirrors: []clustermesh.Export{cart, private}}})
	}
	taking := func(name string) []policy.Policy {
		p := policy.Policy{Spec: policy.WithDefaults(policy.Spec{From: []string{"*"}, To: []string{"*"}, As: policy.Mirror, Name: name})}
		p.Name = "stars"
		return []policy.Policy{p}
	}
	for _, c := range []struct{ template, service, by, sources string }{
		{"far-{name}", "shop/far-cart", "stars", "b/shop/cart c/shop/cart"}, {"{name}-{cluster}", "shop/cart-b", "stars", "b/shop/cart"},
		{"far-{name}", "shop/cart", "", ""}, {"far-{name}", "shop/far-pay", "", ""}, {"{name}-{cluster}", "shop/cart-a", "", ""},
	} {
		if by, sources := policy.MirrorOf(taking(c.template), s, "a", c.service); by != c.by || strings.Join(sources, " ") != c.sources {
			t.Errorf("%s by %s: %q, %q", c.service, c.template, by, sources)
		}
	}
}

// TestSharedByOthers: only what others share with this cluster counts, by policy and sorted. A global
// service counts if this cluster joined it.
func TestSharedByOthers(t *testing.T) {
	name := func(n string) clustermesh.ServiceName { return clustermesh.ServiceName{Namespace: "shop", Name: n} }
	export := func(n, policy string, to ...clustermesh.ClusterName) clustermesh.Export {
		return clustermesh.Export{Service: name(n), Policy: policy, To: to}
	}
	s := clustermesh.State{Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{
		{Cluster: "a"}: {Content: clustermesh.Content{Mirrors: []clustermesh.Export{export("own", "stars")}}},
		{Cluster: "b"}: {Content: clustermesh.Content{
			Exports: []clustermesh.Export{export("pay", "moons"), export("plain", "")},
			Mirrors: []clustermesh.Export{export("web", "stars"), export("cart", "stars"), export("private", "stars", "c")},
		}},
	})}
	got := policy.SharedByOthers(s, "a")
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"moons", "stars"}) {
		t.Errorf("policies %q", names)
	}
	if want := []string{"shop/cart of b", "shop/web of b"}; !slices.Equal(got["stars"], want) {
		t.Errorf("%q, want %q", got["stars"], want)
	}
}
