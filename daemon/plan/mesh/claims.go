package mesh

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// claim is a node's claim that its pods are in a prefix.
type claim struct {
	standing
	prefix netip.Prefix
	// entry is true if it is to ClusterIPs. Several nodes of a cluster can be the entry to one
	// range: the others stand by.
	entry bool
	// contested: it takes part, so that no other claim gets the addresses, but does not get them
	// itself.
	contested bool
}

// excludes reports whether two claims cannot both win. Between clusters any overlap excludes.
// Within a cluster prefixes can nest, if its IPAM gives a node addresses from another's prefix.
// Routes and tunnels use the longest match, so only equal prefixes exclude each other. But
// ClusterIPs are no pods': a node that is the entry to them loses no part of them to one that comes
// later.
func (c claim) excludes(d claim) bool {
	if c.node.Cluster == d.node.Cluster {
		return c.node != d.node && (c.prefix == d.prefix || c.hadEntryBefore(d) || d.hadEntryBefore(c))
	}
	return c.prefix.Overlaps(d.prefix)
}

// hadEntryBefore reports whether c is that of an entry that had the ClusterIPs which d newly claims.
func (c claim) hadEntryBefore(d claim) bool {
	return c.entry && c.had && !d.had && c.prefix.Overlaps(d.prefix)
}

// bothEntries reports whether two claims are those of entries of one cluster.
func (c claim) bothEntries(d claim) bool {
	return c.entry && d.entry && c.node.Cluster == d.node.Cluster
}

// ownedPrefixes gives each prefix one owner. Each losing claim is a Problem, so that no prefix
// changes hands silently. Lost are the claims that lost.
func (m work) ownedPrefixes(nodes []node) (owned, lost map[clustermesh.Origin][]netip.Prefix, problems []clustermesh.Problem) {
	claims, problems := m.claims(nodes)
	claims = append(claims, m.claimRanges()...)
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Or(comparePrefix(a.prefix, b.prefix), a.node.Compare(b.node)) })
	owned, lost = map[clustermesh.Origin][]netip.Prefix{}, map[clustermesh.Origin][]netip.Prefix{}
	for group := range overlapping(claims) {
		verdicts := settleClaims(group)
		problems = append(problems, nested(group, verdicts)...)
		for i, v := range verdicts {
			switch c := group[i]; {
			case c.node.Cluster == "": // a guest's
			case v.won() && !c.contested:
				owned[c.node] = append(owned[c.node], c.prefix)
			case v.won():
				lost[c.node] = append(lost[c.node], c.prefix)
			case !c.bothEntries(group[v.to]):
				lost[c.node] = append(lost[c.node], c.prefix)
				problems = append(problems, overlap(c, group[v.to], v.tied))
				if !v.tied {
					m.rivals.add(group[v.to].node, "prefixes", c.node, c.prefix)
				}
			}
		}
	}
	for o := range owned {
		slices.SortFunc(owned[o], comparePrefix)
		owned[o] = slices.Compact(owned[o])
	}
	return owned, lost, problems
}

// unclaimed is the verdict on a claim without rivals.
var unclaimed = []verdict{{to: -1}}

// settleClaims decides which claims of a group win. Of the entries of a cluster to one range, which
// its root states all alike, the one in use stays; if none is, any will do, so the first is.
func settleClaims(group []claim) []verdict {
	if len(group) == 1 {
		return unclaimed
	}
	standings := make([]standing, len(group))
	for i, c := range group {
		standings[i] = c.standing
	}
	out := settle(standings, func(i, j int) bool { return group[i].excludes(group[j]) })
	for i, v := range out {
		if v.tied && group[i].bothEntries(group[v.to]) && i < v.to {
			out[i] = verdict{to: -1}
		}
	}
	return out
}

// claims returns the claims of all nodes. A prefix that overlaps the ClusterSetIPs, or that no node
// can have, is a Problem instead.
func (m work) claims(nodes []node) (out []claim, problems []clustermesh.Problem) {
	for _, n := range nodes {
		var refusals []refusal
		c := claim{standing: standing{node: n.origin, own: n.origin.Cluster == m.Self.Cluster, dead: n.dead}}
		for _, pre := range n.Prefixes {
			c.prefix, c.entry = pre.Masked(), slices.Contains(n.ClusterIPs, pre)
			c.had = m.had.prefix(&n, c.prefix)
			if i := slices.IndexFunc(m.CIDRs, c.prefix.Overlaps); i >= 0 {
				problems = append(problems, n.origin.Ref().Problem(clustermesh.Problem{
					Code:  problem.ClusterPrefixOverlap,
					Field: "prefixes",
					Message: fmt.Sprintf("%s overlaps %s, which is for ClusterSetIPs: pods of %s there cannot be reached from here",
						c.prefix, m.CIDRs[i], n.origin),
					Try: "give the node a pod CIDR outside clustersetCIDRs",
				}))
				continue
			}
			r := m.forbidden.check(n, c.prefix)
			if r == nil {
				problems = append(problems, m.forbidden.strangers(n, c.prefix)...)
			} else {
				refusals = append(refusals, *r)
			}
			if c.contested = r != nil && r.contested; r == nil || r.contested {
				out = append(out, c)
			}
		}
		if len(refusals) > 0 {
			problems = append(problems, refused(n.origin, refusals))
		}
	}
	return out, problems
}

// overlapping splits claims, sorted by prefix, into the runs in which one prefix contains the rest.
// Prefixes either nest or are disjoint, and a containing prefix sorts before what it contains.
func overlapping(claims []claim) func(func([]claim) bool) {
	return func(yield func([]claim) bool) {
		for start := 0; start < len(claims); {
			end := start + 1
			for end < len(claims) && claims[start].prefix.Overlaps(claims[end].prefix) {
				end++
			}
			if !yield(claims[start:end]) {
				return
			}
			start = end
		}
	}
}

func overlap(lost, won claim, tied bool) clustermesh.Problem {
	try := "give every cluster pod CIDRs of its own"
	if lost.node.Cluster == won.node.Cluster {
		try = "give every node prefixes of its own"
	}
	if clustermesh.IsTunnelAddr(lost.prefix.Addr()) && lost.prefix.IsSingleIP() { // a hash of its name
		try = "give one of the two nodes another name"
	}
	keeps := "which keeps it"
	if tied {
		keeps = "and it is not known whose it is"
	}
	return lost.node.Ref().Problem(clustermesh.Problem{
		Code:  problem.PrefixOverlap,
		Field: "prefixes",
		Message: fmt.Sprintf("%s overlaps %s of %s, %s: pods of %s there cannot be reached from here",
			lost.prefix, won.prefix, called(won.node), keeps, lost.node),
		Try: try,
	})
}

// comparePrefix orders by address, then the shorter prefix first.
func comparePrefix(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
