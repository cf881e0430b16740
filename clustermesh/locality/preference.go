package locality

import (
	"fmt"

	"strait.io/strait/clustermesh"
)

// Preference is what a service asks of the choice. The zero value is the ladder of tiers: node,
// zone, region, cluster, clusterset.
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
	// Distribution, all endpoints of a side are equal, as in Cilium.
	Affinity clustermesh.GlobalAffinity
}

// rank orders candidates: by side, then by tier, and those that do not answer last of all. The
// usable candidates of the lowest rank share the traffic.
type rank uint8

const (
	secondSide rank = rank(None)
	lastRank   rank = 2 * secondSide
	noRank     rank = lastRank + 1
)

// place returns a candidate's rank, and its tier.
func (p Preference) place(s Self, c *Candidate) (rank, Tier) {
	tier := s.tier(c, p)
	if tier == Unreachable {
		return lastRank, tier
	}
	own := c.Cluster == s.Cluster
	if p.flat() {
		tier = ClusterSet
		if own && p.Affinity != clustermesh.AffinityNone {
			tier = Cluster
		}
	}
	r := rank(tier)
	if p.Affinity == clustermesh.AffinityLocal && !own || p.Affinity == clustermesh.AffinityRemote && own {
		r += secondSide
	}
	return r, tier
}

// flat reports whether endpoints are distinguished by side only.
func (p Preference) flat() bool {
	switch p.Affinity {
	case clustermesh.AffinityNone, clustermesh.AffinityLocal, clustermesh.AffinityRemote:
		return !p.ladder()
	}
	return false
}

// ladder reports whether the trafficDistribution is a known one.
func (p Preference) ladder() bool {
	return p.Distribution == clustermesh.PreferSameNode || p.nodeless()
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
func (p Preference) words() string {
	switch {
	case p.LocalOnly:
		return "ready, on this node (internalTrafficPolicy Local)"
	case p.Affinity == clustermesh.AffinityNone && p.flat():
		return "ready; affinity none: all clusters alike"
	case p.Affinity == clustermesh.AffinityLocal:
		return "ready; affinity local: this cluster first"
	case p.Affinity == clustermesh.AffinityRemote:
		return "ready; affinity remote: other clusters first"
	case p.ladder():
		return "ready, in the nearest tier (trafficDistribution " + p.Distribution + ")"
	}
	return "ready, in the nearest tier"
}

// standby tells people what carries the traffic instead of an endpoint of this rank.
func (p Preference) standby(r rank, used Tier) string {
	switch {
	case r < secondSide:
		return fmt.Sprintf("standby: tier %s carries everything", used)
	case p.Affinity == clustermesh.AffinityLocal:
		return "standby: affinity local, this cluster carries everything"
	}
	return "standby: affinity remote, other clusters carry everything"
}
