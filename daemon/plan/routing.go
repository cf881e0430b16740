package plan

import (
	"iter"
	"reflect"
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

// step is how often a frontend that ramps is planned again.
const step = time.Second

// preference returns what decides for a service. Routing is what its own cluster asks for, or else the
// cluster with the oldest export.
func (c Config) preference(own clustermesh.ClusterName, far map[clustermesh.ClusterName]uint32, r *clustermesh.Routing) locality.Preference {
	p := locality.Preference{Factor: c.Locality.Factor, Tiers: c.Locality.Tiers, Prefer: c.Locality.Prefer, Costs: c.Locality.Costs[own]}
	if len(p.Costs) == 0 && len(far) > 0 {
		p.Costs, p.Timed = far, true
	}
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
	if n := s.Records.Get(o).Content.Node; n != nil && n.Drain != nil {
		d.node, d.ofNode = *n.Drain, true
	}
	cluster := s.Records.Get(clustermesh.Origin{Cluster: o.Cluster}).Content
	if cluster.Drain != nil {
		d.cluster, d.ofCluster = *cluster.Drain, true
	}
	i := slices.IndexFunc(cluster.Drains, func(n clustermesh.NodeDrain) bool { return n.Node == o.Node })
	if !d.ofNode && i >= 0 {
		d.node, d.ofNode = cluster.Drains[i].Drain, true
	}
	return d
}

// drains yields what takes an endpoint out of use.
func (d *demand) drains(m member) iter.Seq2[*clustermesh.Drain, string] {
	return func(yield func(*clustermesh.Drain, string) bool) {
		cluster, x := m.from.origin.Cluster, m.from.of(m.Node).drains
		if x.ofCluster && !yield(&x.cluster, "cluster "+string(cluster)) {
			return
		}
		if x.ofNode && !yield(&x.node, "node "+string(m.Node)) {
			return
		}
		i := slices.IndexFunc(d.offers, func(o offer) bool { return o.cluster == cluster })
		if i >= 0 && d.offers[i].routing != nil && d.offers[i].routing.Drain != nil {
			yield(d.offers[i].routing.Drain, "the Service in cluster "+string(cluster))
		}
	}
}

// drained returns which part of an endpoint's share is taken at the time of the plan, and by what. The
// drain that has taken most counts.
func (d *demand) drained(m member) (part float64, by string) {
	for drain, what := range d.drains(m) {
		if p := drain.Drained(d.at); p > part || by == "" {
			part, by = p, what
		}
	}
	return part, by
}

// moves returns how long the plan holds if nothing changes, as frontends ramp and drains take more; 0
// if it stays as it is.
func (d *demand) moves(fs []Frontend) (wait time.Duration) {
	sooner := func(next time.Duration) {
		if next > 0 && (wait == 0 || next < wait) {
			wait = next
		}
	}
	drained := false
	for _, f := range fs {
		if f.Choice.Ramping {
			sooner(step)
		}
		drained = drained || slices.ContainsFunc(f.Choice.Verdicts, func(v locality.Verdict) bool { return v.DrainedBy != "" && v.Drained < 1 })
	}
	if !drained {
		return wait
	}
	members, _ := d.admit()
	for _, m := range members {
		for drain := range d.drains(m) {
			sooner(drain.Next(d.at))
		}
	}
	return wait
}

// levels are the levels of a frontend's choice. If it ramps, the time up to since has had its effect.
type levels struct {
	addr    l4.Addr
	levels  []locality.Level
	ramping bool
	since   time.Time
}

// ramp returns what limits the choice for a frontend, and until when time has then had its effect. A ramp
// begins when more is wanted, not when something last changed, and advances by whole steps, however often
// the service is planned: each plan that gives more is a write.
func (d *demand) ramp(a l4.Addr) (r locality.Ramp, since time.Time) {
	i := slices.IndexFunc(d.past, func(l levels) bool { return l.addr == a })
	if i < 0 {
		return r, d.at
	}
	r.Past, since = d.past[i].levels, d.at
	if passed := d.at.Sub(d.past[i].since); d.past[i].ramping && passed >= 0 { // or else the clock was set back
		whole := passed.Truncate(step)
		r.Step, since = whole.Seconds()/d.over.Seconds(), d.past[i].since.Add(whole)
	}
	return r, since
}

// after makes the demand follow an earlier plan of the same service, if there is one that was asked for the
// same: what was near for another says nothing of what is near now. Ramp is how long all traffic takes to
// return.
func (d *demand) after(old *demand, ramp time.Duration) {
	if d.over = ramp; ramp > 0 && old != nil && !old.learning && reflect.DeepEqual(old.prefer, d.prefer) {
		d.past = old.now
	}
}

// moving are the services whose plan changes by itself.
type moving struct {
	// due is when each does. All that are due within a second are planned in one turn.
	due map[clustermesh.ServiceName]time.Time
	// was is when those that this turn plans were due: a turn is always a little late, and what is due
	// every second must not fall behind.
	was map[clustermesh.ServiceName]time.Time
}

// touch marks those that are due, and returns the others. If the clock was set back, all are due.
func (m moving) touch(now time.Time, touched map[clustermesh.ServiceName]touch) moving {
	next := moving{make(map[clustermesh.ServiceName]time.Time, len(m.due)), map[clustermesh.ServiceName]time.Time{}}
	for s, due := range m.due {
		late := now.Sub(due)
		if late >= 0 || -late > clustermesh.MaxDrainNext {
			touched[s] = changed
		} else {
			next.due[s] = due
		}
		if late >= 0 && late < step {
			next.was[s] = due
		}
	}
	return next
}

// note adds a service that moves.
func (m moving) note(d *demand) {
	if d.wait == 0 {
		return
	}
	at := d.at
	if was, is := m.was[d.service]; is {
		at = was
	}
	due := at.Add(d.wait + time.Second - 1).Truncate(time.Second)
	if other, is := m.due[d.service]; !is || due.Before(other) {
		m.due[d.service] = due
	}
}

// next returns when to plan again, although nothing changes; 0 if there is no need.
func (m moving) next(now time.Time) (wait time.Duration) {
	for _, due := range m.due {
		if left := due.Sub(now); wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}
