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
)

// Distances says how far away other clusters are, from the round-trip times that this node has measured
// itself: what others say does not count. It is damped, so that what is decided by it changes rarely: it
// is known in steps, and a cluster changes its step only if it is a quarter beyond the limit for a
// minute.
type Distances struct {
	nodes    map[clustermesh.Origin][]sample
	clusters map[clustermesh.ClusterName]*standing
}

type sample struct {
	rtt time.Duration
	at  time.Time
}

// standing is a cluster's step, and since when it seems to be another one.
type standing struct {
	step  uint32
	since time.Time // zero while it seems right
}

// NewDistances knows no cluster.
func NewDistances() *Distances {
	return &Distances{nodes: map[clustermesh.Origin][]sample{}, clusters: map[clustermesh.ClusterName]*standing{}}
}

// Ping notes the round-trip time to a node.
func (d *Distances) Ping(o clustermesh.Origin, rtt time.Duration, now time.Time) {
	all := append(d.nodes[o], sample{rtt, now})
	d.nodes[o] = all[max(0, len(all)-kept):]
}

// Update forgets nodes that are no members any more, and reports whether a cluster's step changed.
func (d *Distances) Update(member func(clustermesh.Origin) bool, now time.Time) (changed bool) {
	times := map[clustermesh.ClusterName][]time.Duration{}
	for o, all := range d.nodes {
		all = slices.DeleteFunc(all, func(s sample) bool { return now.Sub(s.at) > while })
		if len(all) == 0 || !member(o) {
			delete(d.nodes, o)
			continue
		}
		d.nodes[o] = all
		times[o.Cluster] = append(times[o.Cluster], shortest(all))
	}
	for c, all := range times {
		slices.Sort(all)
		if d.clusters[c] == nil {
			d.clusters[c] = &standing{}
		}
		changed = d.clusters[c].look(all[len(all)/2], now) || changed
	}
	maps.DeleteFunc(d.clusters, func(c clustermesh.ClusterName, s *standing) bool {
		gone := len(times[c]) == 0
		changed = changed || gone && s.step > 0
		return gone
	})
	return changed
}

// look compares the step with a round-trip time, and reports whether it changed.
func (s *standing) look(rtt time.Duration, now time.Time) bool {
	if stepOf(rtt*4/5) <= s.step && stepOf(rtt*5/4) >= s.step {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < settled {
		return false
	}
	s.step, s.since = stepOf(rtt), time.Time{}
	return true
}

// stepOf returns how many doublings of nearest a round-trip time takes.
func stepOf(rtt time.Duration) uint32 {
	if rtt < nearest {
		return 0
	}
	return uint32(bits.Len64(uint64(rtt / nearest)))
}

func shortest(all []sample) time.Duration {
	return slices.MinFunc(all, func(a, b sample) int { return cmp.Compare(a.rtt, b.rtt) }).rtt
}

// RTTs returns the shortest round-trip time of each node in the last while.
func (d *Distances) RTTs() map[clustermesh.Origin]time.Duration {
	out := make(map[clustermesh.Origin]time.Duration, len(d.nodes))
	for o, all := range d.nodes {
		out[o] = shortest(all)
	}
	return out
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
