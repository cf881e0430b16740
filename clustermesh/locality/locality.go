// Package locality decides which endpoints of a service one node uses, with what weight, and says
// why for each endpoint.
//
// Inputs are the candidates of one frontend, the node's location, what the service asks for and,
// for a ramp, the last choice; output is a Choice. Pure. It must not know services, ports or the
// kernel. The kernel in turn knows weights, but no tiers.
//
// Candidates are judged in this order. The first state that fits a candidate is its class, and only
// the first class with any candidate is used:
//
//	class       | candidate                                                    | used
//	------------|--------------------------------------------------------------|--------------------------
//	healthy     | ready, not drained, its machine answers or is not known      | by tier, with spill
//	impaired    | ready, but the tunnel to it loses what is large              | if no class before has any
//	drained     | ready, but its node, Service or cluster is drained           | if no class before has any
//	unreachable | ready, but its machine or the tunnel to it does not answer   | if no class before has any
//	terminating | serving while it terminates (KEP-1669)                       | if no class before has any
//	unusable    | barred, on a dead machine, or not ready                      | never
//
// So a service is never empty while something serves it. Healthy candidates are ranked, in this order:
//
//	rank        | from                                                         | nearest
//	------------|--------------------------------------------------------------|--------------------------
//	preferred   | service.strait.io/prefer                                     | the first cluster named
//	weighted    | service.strait.io/weights                                    | clusters with a weight
//	side        | service.strait.io/affinity                                   | the side that it prefers
//	tier        | node, zone, region, cluster, clusterset                      | node
//	cost        | locality.costs, or else the round-trip time, in steps        | the lowest
//
// Candidates of one rank share alike, or by the weights of their clusters. A rank carries everything
// while enough of it is healthy; otherwise the rest spills to the next rank (see spill.go).
package locality

import (
	"math"
	"net/netip"

	"strait.io/strait/clustermesh"
)

// Tier is how far an endpoint is from the node, nearest first.
type Tier uint8

// The tiers. Zones and regions extend across clusters: a pod of another cluster in the same zone is
// nearer than one of this cluster in another region.
const (
	Node Tier = iota
	Zone
	Region
	Cluster
	ClusterSet
	// Unreachable endpoints are on machines that do not answer this node, or behind tunnels that carry
	// nothing. They are used last of all, but silence does not withdraw them.
	Unreachable
	// None is the tier of a Choice with nothing in use.
	None
)

func (t Tier) String() string {
	return [...]string{"node", "zone", "region", "cluster", "clusterset", "unreachable", ""}[t]
}

// Self is the location of the deciding node.
type Self struct {
	Cluster  clustermesh.ClusterName
	Node     clustermesh.NodeName
	Locality clustermesh.Locality
}

// Candidate is an endpoint that could serve a frontend.
type Candidate struct {
	Addr     netip.AddrPort
	Cluster  clustermesh.ClusterName
	Node     clustermesh.NodeName
	Locality clustermesh.Locality
	Pod      string

	Ready       bool
	Serving     bool
	Terminating bool

	// Contact is what this node's gossip observes of the endpoint's node.
	Contact clustermesh.Contact
	// Fault, if not empty, says why nothing that is sent to the endpoint's node arrives there, or only some
	// of it if Impaired: a phrase that follows "its node's tunnel".
	Fault    string
	Impaired bool
	// Dead is true if the endpoint's node is dead; see clustermesh.State.Dead.
	Dead bool
	// Barred, if not empty, says why the endpoint must not be used at all.
	Barred string
	// Drained is which part of its share a drain has taken, 0 to 1, and DrainedBy what is drained.
	Drained   float64
	DrainedBy string
}

// class is what a candidate can be used for; see the package comment.
type class uint8

const (
	healthy class = iota
	impaired
	drained
	unreachable
	leaving
	unusable
)

func (c *Candidate) class(t Tier) class {
	switch {
	case !c.allowed():
		return unusable
	case c.Terminating && c.Serving:
		return leaving
	case c.Terminating || !c.Ready:
		return unusable
	case t == Unreachable:
		return unreachable
	case c.Drained >= 1:
		return drained
	case c.Impaired:
		return impaired
	}
	return healthy
}

// Verdict is a candidate and what was decided about it.
type Verdict struct {
	Candidate
	Tier Tier
	// Weight is 0 for an endpoint that gets no new connections.
	Weight uint32
	// Reason is a short phrase for people.
	Reason string
	rank   rank
	class  class
	share  float64 // of new connections, if healthy
}

// Choice is the decision for one frontend: a verdict per candidate, in the order given.
type Choice struct {
	// Tier is the nearest tier that carries traffic; None if no endpoint is in use.
	Tier     Tier
	Verdicts []Verdict
	// Levels are the ranks of healthy endpoints, the nearest first. There are none if no endpoint is
	// healthy.
	Levels []Level
	// Ramping is true while a nearer rank gets less than it will.
	Ramping bool
}

// Level is one rank with its part of new connections.
type Level struct {
	// Share is 0 to 1.
	Share float64
	// Ready is how many endpoints are healthy, less what a drain has taken of them. Expected is how
	// many there would be if nothing was wrong.
	Ready    float64
	Expected int
	// stable and draining are how many of the healthy ones a drain leaves alone, and takes from.
	stable, draining int
	rank             rank
}

// Select picks the endpoints for new connections, as the package comment says. The last choice for
// the frontend limits how fast nearer ranks get their traffic back; see Ramp.
func Select(self Self, candidates []Candidate, prefer Preference, ramp Ramp) Choice {
	c := Choice{Tier: None, Verdicts: make([]Verdict, len(candidates))}
	best := unusable
	for i, cand := range candidates {
		if cand.Barred == "" {
			cand.Barred = prefer.excludes(self, &cand)
		}
		v := &c.Verdicts[i]
		v.Candidate = cand
		v.Drained = drainStep * math.Floor(cand.Drained/drainStep)
		v.rank, v.Tier = prefer.place(self, &v.Candidate)
		v.class = v.Candidate.class(v.Tier)
		best = min(best, v.class)
	}
	switch best {
	case unusable:
	case healthy:
		c.spread(self, prefer, ramp)
	default:
		c.leastBad(best)
	}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		if v.Weight > 0 {
			c.Tier = min(c.Tier, v.Tier)
		}
	}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		v.Reason = c.reason(v, prefer)
	}
	return c
}

// leastBad uses the nearest candidates of a class, alike. Those that do not answer are the farthest.
func (c *Choice) leastBad(of class) {
	used := noRank
	far := func(v *Verdict) rank {
		if v.Tier == Unreachable {
			return lastRank
		}
		return v.rank
	}
	for i := range c.Verdicts {
		if v := &c.Verdicts[i]; v.class == of {
			used = min(used, far(v))
		}
	}
	for i := range c.Verdicts {
		if v := &c.Verdicts[i]; v.class == of && far(v) == used {
			v.Weight = 1
		}
	}
}

// silent reports whether nothing that this node sends to the endpoint's node is answered.
func (c *Candidate) silent() bool {
	return c.Contact == clustermesh.Silent || c.Fault != "" && !c.Impaired
}

// blocked reports whether the tunnel to the endpoint's node is to blame. If the machine answers nowhere,
// it is not.
func (c *Candidate) blocked() bool { return c.Fault != "" && c.Contact != clustermesh.Silent }

func (c *Candidate) allowed() bool { return c.Barred == "" && !c.Dead }

// tier returns how far a candidate is, on the ladder of the tiers that count. Empty labels match
// nothing: two nodes without labels are not in the same zone.
func (s Self) tier(c *Candidate, p Preference) Tier {
	own := c.Cluster == s.Cluster
	sameRegion := c.Locality.Region != "" && c.Locality.Region == s.Locality.Region
	sameZone := c.Locality.Zone != "" && c.Locality.Zone == s.Locality.Zone && c.Locality.Region == s.Locality.Region
	sameNode := own && c.Node != "" && c.Node == s.Node
	switch {
	case sameNode && p.counts(Node):
		return Node
	case c.silent() && !sameNode:
		return Unreachable
	case sameZone && p.counts(Zone):
		return Zone
	case sameRegion && p.counts(Region):
		return Region
	case own && p.counts(Cluster):
		return Cluster
	}
	return ClusterSet
}
