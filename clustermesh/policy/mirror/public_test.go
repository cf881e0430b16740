package mirror_test

import (
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
)

// TestPublicDomains: no namespace that is a top-level domain is made because a cluster has a Service in
// one of that name: only by the word of the policy itself.
func TestPublicDomains(t *testing.T) {
	github := service("github", 0, 443)
	github.Namespace = "com"
	all := []policy.Term{{Names: []string{".*"}}}
	for what, c := range map[string]struct {
		change func(*policy.Spec)
		made   bool
	}{
		"by a Service's name alone": {func(s *policy.Spec) { s.Select = all }, false},
		"by a template":             {func(s *policy.Spec) { s.Select, s.Namespace = all, "{namespace}" }, false},
		"by the name of a Service": {func(s *policy.Spec) {
			s.Select, s.Namespace, s.Name = []policy.Term{{Namespaces: []string{"shop"}}}, "{name}", "x"
		}, false},
		"named in the policy":               {func(s *policy.Spec) { s.Select = []policy.Term{{Namespaces: []string{"com"}}} }, true},
		"named as the mirrors' own":         {func(s *policy.Spec) { s.Select, s.Namespace = all, "com" }, true},
		"imported":                          {func(s *policy.Spec) { s.Select, s.As = all, policy.Import }, false},
		"imported, and named in the policy": {func(s *policy.Spec) { s.Select, s.As = []policy.Term{{Namespaces: []string{"com"}}}, policy.Import }, true},
	} {
		to := cluster("c2")
		to.Namespaces = map[string]bool{}
		dev := service("dev", 0, 80)
		c1 := cluster("c1", github, dev)
		c1.Exported = map[string][]clustermesh.ServiceName{"all": {{Namespace: "com", Name: "github"}}}
		p := mirror.Wanted(set, []policy.Policy{mirroring("all", func(s *policy.Spec) { s.CreateNamespace = true }, c.change)}, []mirror.Cluster{c1}, to)
		made := slices.Contains(p.Namespaces, "com") || slices.Contains(p.Namespaces, "dev")
		refused := slices.ContainsFunc(p.Skipped, func(s mirror.Skipped) bool {
			return s.Reason == policy.NamespaceMissing && strings.Contains(s.Message, "is a top-level domain of the public DNS")
		})
		if made != c.made || refused == c.made {
			t.Errorf("%s: namespaces %v, skipped %v", what, p.Namespaces, p.Skipped)
		}
		to.Namespaces = map[string]bool{"com": true, "dev": true, "shop": true}
		if p := mirror.Wanted(set, []policy.Policy{mirroring("all", func(s *policy.Spec) { s.CreateNamespace = true }, c.change)}, []mirror.Cluster{c1}, to); len(p.Skipped) > 0 {
			t.Errorf("%s, where the namespace is there: %v", what, p.Skipped)
		}
	}
}
