// Package locality decides which endpoints of a service one node uses, with what weight, and says
// why for each endpoint.
//
// Inputs are the candidates of one frontend and the node's location; output is a Choice. Pure. It
// must not know services, ports or the kernel. The kernel in turn knows weights, but no tiers.
package locality

import (
	"net/netip"
	"slices"

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
	// Unreachable endpoints are on machines that do not answer this node. They are used last of
	// all, but silence does not withdraw them.
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
	// Dead is true if the endpoint's node is dead; see clustermesh.State.Dead.
	Dead bool
	// Barred, if not empty, says why the endpoint must not be used at all.
	Barred string
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
}

// Choice is the decision for one frontend: a verdict per candidate, in the order given.
type Choice struct {
	// Tier is the nearest tier that carries traffic; None if no endpoint is in use.
	Tier     Tier
	Verdicts []Verdict
}

// Select picks the endpoints for new connections:
//
//   - barred endpoints, those of dead nodes and those that the preference excludes are never used;
//   - the nearest tier with a ready endpoint carries all traffic, equally per endpoint;
//   - when nothing is ready anywhere, endpoints that still serve while they terminate are used in
//     the same way (KEP-1669).
//
// The preference decides what is near. There is no fallback inside a tier: falling back means
// choosing a farther tier.
func Select(self Self, candidates []Candidate, prefer Preference) Choice {
	c := Choice{Tier: None, Verdicts: make([]Verdict, len(candidates))}
	for i, cand := range candidates {
		if cand.Barred == "" {
			cand.Barred = prefer.excludes(self, &cand)
		}
		c.Verdicts[i].Candidate = cand
	}
	usable := (*Candidate).ready
	if !slices.ContainsFunc(c.Verdicts, func(v Verdict) bool { return v.Candidate.ready() }) {
		usable = (*Candidate).serving
	}
	used := noRank
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		v.rank, v.Tier = prefer.place(self, &v.Candidate)
		if usable(&v.Candidate) && v.rank < used {
			used, c.Tier = v.rank, v.Tier
		}
	}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		if usable(&v.Candidate) && v.rank == used {
			v.Weight = 1
		}
		v.Reason = reason(v, c.Tier, prefer)
	}
	return c
}

func (c *Candidate) allowed() bool { return c.Barred == "" && !c.Dead }
func (c *Candidate) ready() bool   { return c.allowed() && c.Ready && !c.Terminating }
func (c *Candidate) serving() bool { return c.allowed() && c.Serving && c.Terminating }

// tier returns how far a candidate is, on the ladder of tiers. Empty labels match nothing: two
// nodes without labels are not in the same zone.
func (s Self) tier(c *Candidate, p Preference) Tier {
	sameRegion := c.Locality.Region != "" && c.Locality.Region == s.Locality.Region
	switch {
	case c.Cluster == s.Cluster && c.Node != "" && c.Node == s.Node && !p.nodeless():
		return Node
	case c.Contact == clustermesh.Silent:
		return Unreachable
	case c.Locality.Zone != "" && c.Locality.Zone == s.Locality.Zone &&
		c.Locality.Region == s.Locality.Region:
		return Zone
	case sameRegion:
		return Region
	case c.Cluster == s.Cluster:
		return Cluster
	}
	return ClusterSet
}

func reason(v *Verdict, used Tier, prefer Preference) string {
	switch {
	case v.Barred != "":
		return v.Barred
	case v.Dead:
		return "node is dead: its cluster says so"
	case v.Weight > 0 && v.Terminating:
		return "terminating, but nothing is ready anywhere"
	case v.Weight > 0 && v.Tier == Unreachable:
		return "node does not answer, but nothing else is ready"
	case v.Weight > 0:
		return prefer.words() + stale(v)
	case v.Terminating:
		return "terminating: no new connections"
	case !v.Ready:
		return "pod is not ready"
	case v.Tier == Unreachable:
		return "standby: its node does not answer, ranked last"
	}
	return prefer.standby(v.rank, used) + stale(v)
}

// stale marks an endpoint whose record may be old.
func stale(v *Verdict) string {
	switch v.Contact {
	case clustermesh.Held:
		return " (held: its node is not heard)"
	case clustermesh.Quiet:
		return " (its node's daemon is down, its machine answers)"
	}
	return ""
}
