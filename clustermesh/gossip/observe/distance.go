package observe

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

const (
	// nearest is the round-trip time below which all clusters are equally far: what a data centre's
	// network and a busy machine take. Each doubling of it is a step farther.
	nearest = 5 * time.Millisecond
	// settled is how long a distance must be another one before it counts.
	settled = time.Minute
	// kept is how many round-trip times of a node count, of the last while. The shortest of them is that
	// of the network alone; what is added to the others is load.
	kept  = 8
	while = 10 * time.Minute
	// unanswered is how long a cluster may be heard without answering a ping: in a large clusterset,
	// it takes many minutes until each node was pinged once.
	unanswered = 20 * time.Minute
	// forgotten is how long after it was last heard a cluster's step is forgotten.
	forgotten = 24 * time.Hour
)

// Distances estimates how far away other clusters are, from the round-trip times that this node has measured
// itself: what others report does not count. It is damped, so that what is decided by it changes rarely: it
// is known in steps, and a cluster changes its step only if it is a quarter beyond the limit for a
// minute. A cluster that falls silent keeps its step.
type Distances struct {
	self     clustermesh.ClusterName
	clusters map[clustermesh.ClusterName]*standing
	pinged   map[clustermesh.ClusterName]*pings
	alive    clustermesh.ByOrigin[bool] // as of the last Update
}

// pings are those of a cluster's nodes.
type pings struct {
	nodes map[clustermesh.NodeName][]sample
	// median is that of the nodes' round-trip times, as long as nothing is new and nothing gets too
	// old.
	median time.Duration
	news   bool
	until  time.Time // when the first sample gets too old; zero if none will
}

type sample struct {
	rtt time.Duration
	at  time.Time
	// ahead is by how much the node's clock was ahead of this machine's, if told.
	ahead time.Duration
	told  bool
}

// standing is a cluster's step, and since when it seems to be another one.
type standing struct {
	step  uint32
	since time.Time // zero while it seems right
	first time.Time // when it was first heard
	heard time.Time // when it was last heard
}

// Unmeasured is the step of a cluster that is heard and never answered a ping: it must not look near.
const Unmeasured = 40

// NewDistances begins with the steps of an earlier life, for a node of a cluster.
func NewDistances(self clustermesh.ClusterName, steps map[clustermesh.ClusterName]uint32, now time.Time) *Distances {
	d := &Distances{self: self, clusters: map[clustermesh.ClusterName]*standing{}, pinged: map[clustermesh.ClusterName]*pings{}}
	for c, step := range steps {
		d.clusters[c] = &standing{step: min(step, Unmeasured), first: now, heard: now}
	}
	return d
}

// Ping notes the round-trip time to a node of another cluster, and what its clock showed half a
// round trip ago; zero if it did not say.
func (d *Distances) Ping(o clustermesh.Origin, rtt time.Duration, there, now time.Time) {
	p := d.pinged[o.Cluster]
	if p == nil {
		p = &pings{nodes: map[clustermesh.NodeName][]sample{}}
		d.pinged[o.Cluster] = p
	}
	s := sample{rtt: rtt, at: now, told: !there.IsZero()}
	if s.told {
		s.ahead = there.Sub(now.Add(-rtt / 2))
	}
	all := append(p.nodes[o.Node], s)
	p.nodes[o.Node] = all[max(0, len(all)-kept):]
	p.news = true
}

// Update looks at the clusters of the nodes that are heard, and reports whether a step changed.
// Where no node is new, gone or was pinged since the last time, it does not look at the nodes.
func (d *Distances) Update(alive clustermesh.ByOrigin[bool], now time.Time) (changed bool) {
	for o := range alive.Since(d.alive) {
		if p := d.pinged[o.Cluster]; p != nil {
			p.news = true
		}
	}
	d.alive = alive
	for c, p := range d.pinged {
		if p.news || !p.until.IsZero() && now.After(p.until) {
			p.measure(func(n clustermesh.NodeName) bool { return alive.Get(clustermesh.Origin{Cluster: c, Node: n}) }, now)
		}
		if len(p.nodes) == 0 {
			delete(d.pinged, c)
		}
	}
	for _, c := range alive.Clusters() {
		if c == d.self {
			continue
		}
		if d.clusters[c] == nil {
			d.clusters[c] = &standing{first: now}
		}
		s := d.clusters[c]
		s.heard = now
		switch p := d.pinged[c]; {
		case p != nil:
			changed = s.look(stepOf(p.median*4/5), stepOf(p.median), stepOf(p.median*5/4), now) || changed
		case s.step == 0 && now.Sub(s.first) > unanswered:
			s.step, changed = Unmeasured, true
		}
	}
	maps.DeleteFunc(d.clusters, func(_ clustermesh.ClusterName, s *standing) bool {
		gone := now.Sub(s.heard) > forgotten
		changed = changed || gone && s.step > 0
		return gone
	})
	return changed
}

// measure forgets the nodes that are not alive, and what is too old, and computes the median again.
func (p *pings) measure(alive func(clustermesh.NodeName) bool, now time.Time) {
	p.news, p.until = false, time.Time{}
	times := make([]time.Duration, 0, len(p.nodes))
	for n, all := range p.nodes {
		if !alive(n) {
			delete(p.nodes, n)
			continue
		}
		// The last one stays, however old: a node that answers no more pings is where it was.
		fresh := slices.IndexFunc(all, func(s sample) bool { return now.Sub(s.at) <= while })
		if fresh < 0 {
			fresh = len(all) - 1
		}
		if all = all[fresh:]; len(all) > 1 {
			if end := all[0].at.Add(while); p.until.IsZero() || end.Before(p.until) {
				p.until = end
			}
		}
		p.nodes[n] = all
		times = append(times, shortest(all))
	}
	if len(times) > 0 {
		slices.Sort(times)
		p.median = times[len(times)/2]
	}
}

// look compares the step with one that was measured, and with those at a quarter less and more. It
// reports whether the step changed.
func (s *standing) look(less, measured, more uint32, now time.Time) bool {
	if less <= s.step && s.step <= more {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < settled {
		return false
	}
	s.step, s.since = measured, time.Time{}
	return true
}

// stepOf returns how many doublings of nearest a round-trip time takes.
func stepOf(rtt time.Duration) uint32 {
	if rtt < nearest {
		return 0
	}
	return min(Unmeasured-1, uint32(bits.Len64(uint64(rtt/nearest))))
}

func shortest(all []sample) time.Duration {
	return slices.MinFunc(all, func(a, b sample) int { return cmp.Compare(a.rtt, b.rtt) }).rtt
}

// RTTs returns the shortest round-trip time of each node in the last while.
func (d *Distances) RTTs() map[clustermesh.Origin]time.Duration {
	out := map[clustermesh.Origin]time.Duration{}
	for c, p := range d.pinged {
		for n, all := range p.nodes {
			out[clustermesh.Origin{Cluster: c, Node: n}] = shortest(all)
		}
	}
	return out
}

// clockSet is by how much a clock must differ from what it showed before, beyond what round trips
// explain, to have been set: a free-running one drifts by less in the last while.
const clockSet = 100 * time.Millisecond

// Ahead returns by how much the clock of a node of another cluster is ahead of this machine's, as
// of the shortest round trip in the last while since one of them was set. The error is half of that
// round trip at most. It is not known of nodes that were not pinged, or that have not told.
func (d *Distances) Ahead(o clustermesh.Origin) (by time.Duration, known bool) {
	p := d.pinged[o.Cluster]
	if p == nil {
		return 0, false
	}
	all := p.nodes[o.Node]
	if len(all) == 0 || !all[len(all)-1].told {
		return 0, false
	}
	last := all[len(all)-1]
	best := last
	for _, s := range slices.Backward(all) {
		if !s.told || (s.ahead-last.ahead).Abs() > s.rtt+last.rtt+clockSet {
			break
		}
		if s.rtt < best.rtt {
			best = s
		}
	}
	return best.ahead, true
}

// Limit returns the round-trip time at which a step begins.
func Limit(step uint32) time.Duration { return nearest << (step - 1) }

// Steps returns the steps of clusters that are not among the nearest.
func (d *Distances) Steps() map[clustermesh.ClusterName]uint32 {
	out := map[clustermesh.ClusterName]uint32{}
	for c, s := range d.clusters {
		if s.step > 0 {
			out[c] = s.step
		}
	}
	return out
}
