package locality

import (
	"fmt"
	"math"
	"slices"

	"strait.io/strait/clustermesh"
)

// Preference is what a service asks of the choice, and what the configuration says. The zero value is
// the ladder of tiers: node, zone, region, cluster, clusterset, all or nothing.
type Preference struct {
	// LocalOnly is internalTrafficPolicy Local: only endpoints on the deciding node. If no node
	// decides (Self.Node is empty), it means those of Self.Cluster, whose nodes then each use their
	// own.
	LocalOnly bool
	// Distribution is a Service's trafficDistribution. With PreferSameZone, the deciding node is no
	// nearer than its zone. PreferSameNode is the ladder, which begins with the node. Unknown
	// values have no effect.
	Distribution string
	// Affinity prefers one side, Self.Cluster or all other clusters, to the other. Without a
	// Distribution or Tiers, all endpoints of a side are equal, as in Cilium.
	Affinity clustermesh.GlobalAffinity

	// Tiers, Prefer, Weights and MinReady are those of clustermesh.Routing.
	Tiers    []string
	Prefer   []clustermesh.ClusterName
	Weights  []clustermesh.ClusterWeight
	MinReady clustermesh.MinReady

	// Factor is how many times its share an endpoint can bear: a rank keeps everything while its
	// healthy part times Factor is at least 1. With 0, one healthy endpoint is enough.
	Factor float64
	// Timed says that Costs are steps of round-trip time, and not what the configuration says.
	Timed bool
	// Costs are those of traffic from this cluster to others; others cost 0. The cheaper come first
	// among those that are equally far.
	Costs map[clustermesh.ClusterName]uint32
}

// rank orders candidates, see the package comment. The parts, from the highest bits: position in
// Prefer, whether the cluster has no weight, side, tier, cost.
type rank uint64

const (
	preferShift      = 48
	unweighted  rank = 1 << 47
	secondSide  rank = 1 << 46
	tierShift        = 32
	lastRank    rank = math.MaxUint64 - 1
	noRank      rank = math.MaxUint64
	maxCost          = 1<<32 - 1
)

// place returns a candidate's rank, as if its machine answered, and its tier.
func (p Preference) place(s Self, c *Candidate) (rank, Tier) {
	shown := s.tier(c, p)
	answers := *c
	answers.Contact, answers.Fault = clustermesh.Alive, ""
	tier := s.tier(&answers, p)
	own := c.Cluster == s.Cluster
	if p.flat() {
		tier = ClusterSet
		if own && p.Affinity != clustermesh.AffinityNone {
			tier = Cluster
		}
	}
	var r rank
	if len(p.Prefer) > 0 {
		at := slices.Index(p.Prefer, c.Cluster)
		if at < 0 {
			at = len(p.Prefer)
		}
		r |= rank(at) << preferShift
	}
	if p.Affinity == clustermesh.AffinityLocal && !own || p.Affinity == clustermesh.AffinityRemote && own {
		r |= secondSide
	}
	within := rank(tier) << tierShift
	if p.Affinity != clustermesh.AffinityNone || !p.flat() {
		within |= rank(min(p.Costs[c.Cluster], maxCost))
	}
	switch {
	case len(p.Weights) == 0:
		r |= within
	case p.weight(c.Cluster) == 0:
		r |= unweighted | within
	}
	if shown == Unreachable {
		return r, shown
	}
	return r, tier
}

// counts reports whether endpoints can be in a tier. With PreferSameZone, the deciding node is no
// nearer than the rest of its zone.
func (p Preference) counts(t Tier) bool {
	if t == Node && p.nodeless() {
		return false
	}
	return len(p.Tiers) == 0 || slices.Contains(p.Tiers, t.String())
}

// weight returns a cluster's weight; 0 if it has none.
func (p Preference) weight(c clustermesh.ClusterName) uint32 {
	for _, w := range p.Weights {
		if w.Cluster == c {
			return w.Weight
		}
	}
	return 0
}

// flat reports whether endpoints are distinguished by side only.
func (p Preference) flat() bool {
	switch p.Affinity {
	case clustermesh.AffinityNone, clustermesh.AffinityLocal, clustermesh.AffinityRemote:
		return !p.ladder()
	}
	return false
}

// ladder reports whether the service says which tiers count.
func (p Preference) ladder() bool {
	return p.Distribution == clustermesh.PreferSameNode || p.nodeless() || len(p.Tiers) > 0
}

// nodeless reports whether the deciding node is no nearer than the rest of its zone.
func (p Preference) nodeless() bool {
	return p.Distribution == clustermesh.PreferSameZone || p.Distribution == clustermesh.PreferClose
}

// excludes returns why a candidate must not be used at all, or "".
func (p Preference) excludes(s Self, c *Candidate) string {
	switch {
	case !p.LocalOnly:
		return ""
	case s.Node == "" && c.Cluster != s.Cluster:
		return "internalTrafficPolicy Local: only nodes of its own cluster may use it"
	case s.Node != "" && (c.Cluster != s.Cluster || c.Node != s.Node):
		return "internalTrafficPolicy Local: not on this node"
	}
	return ""
}

// words tells people why an endpoint is used.
func (p Preference) words(v *Verdict) string {
	switch {
	case p.LocalOnly:
		return "ready, on this node (internalTrafficPolicy Local)"
	case p.weight(v.Cluster) > 0:
		return fmt.Sprintf("ready; its cluster has weight %d", p.weight(v.Cluster))
	case len(p.Weights) > 0:
		return "ready; fail-over: its cluster has no weight"
	case slices.Contains(p.Prefer, v.Cluster):
		return "ready, in a preferred cluster"
	case p.Affinity == clustermesh.AffinityNone && p.flat():
		return "ready; affinity none: all clusters alike"
	case p.Affinity == clustermesh.AffinityLocal:
		return "ready; affinity local: this cluster first"
	case p.Affinity == clustermesh.AffinityRemote:
		return "ready; affinity remote: other clusters first"
	case len(p.Tiers) == 0 && p.ladder():
		return "ready, in the nearest tier (trafficDistribution " + p.Distribution + ")"
	}
	return "ready, in the nearest tier"
}
