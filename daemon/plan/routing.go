package plan

import (
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/internal/l4"
)

// Locality is what the configuration says about the choice of endpoints.
type Locality struct {
	// Factor is that of locality.Preference; 0 turns spilling off.
	Factor float64
	// Ramp is how long all traffic takes to return to nearer endpoints; 0 is at once.
	Ramp time.Duration
	// Tiers and Prefer apply to Services that say nothing themselves.
	Tiers  []string
	Prefer []clustermesh.ClusterName
	// Costs are those of traffic from one cluster to another.
	Costs map[clustermesh.ClusterName]map[clustermesh.ClusterName]uint32
}

// step is how often what moves by itself, a ramp or a drain that takes time, is planned again.
const step = time.Second

// preference returns what decides for a service. Routing is what its own cluster asks for, or else the
// cluster with the oldest export.
func (c Config) preference(own clustermesh.ClusterName, r *clustermesh.Routing) locality.Preference {
	p := locality.Preference{Factor: c.Locality.Factor, Tiers: c.Locality.Tiers, Prefer: c.Locality.Prefer, Costs: c.Locality.Costs[own]}
	if !r.Says() {
		return p
	}
	p.Weights, p.MinReady = r.Weights, r.MinReady
	if len(r.Tiers) > 0 {
		p.Tiers = r.Tiers
	}
	if len(r.Prefer) > 0 {
		p.Prefer = r.Prefer
	}
	return p
}

// routing returns what decides for this cluster's clients: what its own Service asks for, or else the
// oldest export. The word of the client's own cluster counts first, because it is its traffic.
func (e exported) routing(own clustermesh.ClusterName) *clustermesh.Routing {
	var oldest *clustermesh.Routing
	for _, o := range e.offers {
		if o.cluster == own && o.routing.Says() {
			return o.routing
		}
		if o.cluster == e.Exporters[0] {
			oldest = o.routing
		}
	}
	return oldest
}

// drains are what takes the endpoints of a node out of use. The zero value is nothing.
type drains struct {
	node, cluster     clustermesh.Drain
	ofNode, ofCluster bool
}

func drainsOf(s clustermesh.State, o clustermesh.Origin) (d drains) {
	if n := s.Records[o].Content.Node; n != nil && n.Drain != nil {
		d.node, d.ofNode = *n.Drain, true
	}
	if c := s.Records[clustermesh.Origin{Cluster: o.Cluster}].Content.Drain; c != nil {
		d.cluster, d.ofCluster = *c, true
	}
	return d
}

// drained returns which part of an endpoint's share is taken at the time of the plan, and by what. The
// drain that has taken most counts.
func (d *demand) drained(m member) (part float64, by string) {
	most := func(x *clustermesh.Drain, what string) {
		if p := x.Drained(d.at); x != nil && (p > part || by == "") {
			part, by = p, what
		}
	}
	x := m.from.of(m.Node).drains
	if x.ofCluster {
		most(&x.cluster, "cluster "+string(m.from.origin.Cluster))
	}
	if x.ofNode {
		most(&x.node, "node "+string(m.Node))
	}
	if i := slices.IndexFunc(d.offers, func(o offer) bool { return o.cluster == m.from.origin.Cluster }); i >= 0 && d.offers[i].routing != nil {
		most(d.offers[i].routing.Drain, "the Service in cluster "+string(m.from.origin.Cluster))
	}
	return part, by
}

// levels are the levels of a frontend's choice.
type levels struct {
	addr    l4.Addr
	levels  []locality.Level
	ramping bool
}

// ramp returns what limits the choice for a frontend. The time since the last plan counts only if the
// frontend was ramping then: a ramp begins when more is wanted, not when something last changed.
func (d *demand) ramp(a l4.Addr) locality.Ramp {
	i := slices.IndexFunc(d.past, func(l levels) bool { return l.addr == a })
	switch {
	case i < 0:
		return locality.Ramp{}
	case !d.past[i].ramping:
		return locality.Ramp{Past: d.past[i].levels}
	}
	return locality.Ramp{Past: d.past[i].levels, Step: d.step}
}

// after makes the demand follow an earlier plan of the same service, if there is one.
func (d *demand) after(old *demand, ramp time.Duration) {
	if d.ramps = ramp > 0; !d.ramps || old == nil || old.learning {
		return
	}
	d.past, d.step = old.now, max(0, d.at.Sub(old.at).Seconds()/ramp.Seconds())
}

// moving are the services whose plan changes by itself, with the time of the last one.
type moving map[clustermesh.ServiceName]time.Time

// touch marks those that are due.
func (m moving) touch(now time.Time, touched map[clustermesh.ServiceName]touch) {
	for s, at := range m {
		if now.Sub(at) >= step || now.Before(at) {
			touched[s] = changed
			delete(m, s)
		}
	}
}

func (m moving) note(d *demand) {
	if d.moves {
		m[d.service] = d.at
	}
}

// next returns when to plan again, although nothing changes; 0 if there is no need.
func (m moving) next() time.Duration {
	if len(m) == 0 {
		return 0
	}
	return step
}
