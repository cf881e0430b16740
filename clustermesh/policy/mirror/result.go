package mirror

import (
	"maps"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
)

// Results returns what a cluster has by each policy, and what is left out, sorted by policy. Made counts the
// mirrors that there are, by policy; a policy that made one and is gone is among them. Skipped are those
// of the plan, and others; of those beyond clustermesh.MaxNamed, only the number. The result is
// not nil.
func Results(policies []policy.Policy, p Plan, made map[string]int, skipped []Skipped) []clustermesh.PolicyResult {
	all := map[string]*clustermesh.PolicyResult{}
	of := func(policy string) *clustermesh.PolicyResult {
		if all[policy] == nil {
			all[policy] = &clustermesh.PolicyResult{Policy: policy, Imported: p.Imported[policy], Mirrored: made[policy]}
		}
		return all[policy]
	}
	for _, p := range policies {
		of(p.Name)
	}
	for name := range made {
		of(name)
	}
	for _, s := range slices.SortedStableFunc(slices.Values(skipped), func(a, b Skipped) int { return strings.Compare(a.Source, b.Source) }) {
		of(s.Policy).Skip(s.Source, s.Reason, s.Message)
	}
	out, named := make([]clustermesh.PolicyResult, 0, len(all)), 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := *all[name]
		some := min(len(r.Skipped), clustermesh.MaxNamed-named)
		r.Skipped, r.SkippedMore = r.Skipped[:some:some], r.SkippedMore+len(r.Skipped)-some
		out, named = append(out, r), named+some
	}
	return out
}
