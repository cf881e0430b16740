package clustermesh

import (
	"cmp"
	"fmt"
	"slices"

	"strait.io/strait/internal/problem"
)

// bound returns which of the exports of another cluster become imports in cluster own, and how many do
// not: as many with a ClusterSetIP as its quota allows, and as many headless ones. Those stay that are in
// force already, which have an address; then the oldest. So one more export never takes the place of
// another, and what a quota finds at an upgrade stays. All nodes of a cluster come to the same result.
func (s State) bound(own, c ClusterName, exports []Export) (kept []Export, left int) {
	limit, bounded := s.Quotas[c]
	if c == own || !bounded || len(exports) <= limit {
		return exports, 0
	}
	inForce := map[ServiceName]bool{}
	for _, a := range s.Records.Get(Origin{Cluster: own}).Content.Allocations {
		inForce[a.Service] = true
	}
	order := func(e Export) int {
		if inForce[e.Service] {
			return 0
		}
		return 1
	}
	exports = slices.Clone(exports)
	slices.SortStableFunc(exports, func(a, b Export) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.Created, b.Created), a.Service.Compare(b.Service))
	})
	taken := map[ServiceType]int{}
	for _, e := range exports {
		if taken[e.Type] >= limit && (!inForce[e.Service] || e.Type == Headless) {
			left++
			continue
		}
		taken[e.Type]++
		kept = append(kept, e)
	}
	return kept, left
}

// Imported returns the exports of another cluster that become imports in cluster own.
func (s State) Imported(own, c ClusterName) []Export {
	kept, _ := s.bound(own, c, s.exportsTo(own, c))
	return kept
}

// OverQuota reports the clusters that export more to cluster own than their quotas allow.
func (s State) OverQuota(own ClusterName) (out []Problem) {
	for _, c := range s.Clusters() {
		all := s.exportsTo(own, c)
		if _, left := s.bound(own, c, all); left > 0 {
			out = append(out, problem.Cluster(string(c)).Problem(Problem{
				Code: problem.QuotaReached, Field: "quota.exports",
				Message: fmt.Sprintf("it exports %d Services, and its quota is %d with a ClusterSetIP, and as many headless ones: the youngest %d are not imported; those in force stay", len(all), s.Quotas[c], left),
				Try:     fmt.Sprintf("if it should have so many, set quota.exports in the pin of cluster %s (authority.pinsFile); otherwise find out what it does", c),
			}))
		}
	}
	return out
}

// exportsTo returns the exports of a cluster that are for cluster own.
func (s State) exportsTo(own, c ClusterName) []Export {
	all := s.Records.Get(Origin{Cluster: c}).Content.Exports
	if !slices.ContainsFunc(all, func(e Export) bool { return !e.For(own) }) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(e Export) bool { return !e.For(own) })
}
