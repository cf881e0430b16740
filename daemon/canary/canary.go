// Package canary measures how long it takes until what one cluster publishes is in force on the
// nodes of the others.
//
// The leader of each cluster writes the time into its node's record every Period. Inputs are the
// records that a plan in force was made from, and by how much clocks differ; outputs are the times
// that canaries took. Pure. It must not know how records travel, nor who shows the times.
package canary

import (
	"time"

	"strait.io/strait/clustermesh"
)

const (
	// Period is how often a leader sends a canary. Each costs every node of the clusterset one
	// record.
	Period = 30 * time.Second
	// longest is the longest time that counts. A later canary replaces an earlier one, so more than
	// that is no delay, but a clock that was set, or a record that is not true.
	longest = 10 * time.Minute
)

// Sender decides when a node's record carries a new canary. The zero value has sent none.
type Sender struct{ last time.Time }

// Next returns the canary for the node's record, in Unix milliseconds, 0 for none, and when the
// next one is due, 0 for never.
func (s *Sender) Next(leads bool, now time.Time) (canary int64, in time.Duration) {
	if !leads {
		s.last = time.Time{}
		return 0, 0
	}
	// A clock that was set back must not end the canaries.
	if age := now.Sub(s.last); age >= Period || age < 0 {
		s.last = now
	}
	return s.last.UnixMilli(), Period - now.Sub(s.last)
}

// Arrival is a canary that a node has in force.
type Arrival struct {
	Cluster clustermesh.ClusterName
	Took    time.Duration
}

// Arrivals finds the canaries among changed records. The zero value has seen no records.
type Arrivals struct {
	seen clustermesh.ByOrigin[clustermesh.Record]
	last map[clustermesh.Origin]int64
}

// Note returns the canaries of other clusters that these records have and those of the last time
// had not. The first canary of a node does not count, because it may have been there for long.
// Ahead says how far a node's clock is ahead of this machine's; if that is not known, the node's
// canaries do not count.
func (a *Arrivals) Note(records clustermesh.ByOrigin[clustermesh.Record], self clustermesh.ClusterName, ahead func(clustermesh.Origin) (time.Duration, bool), now time.Time) (out []Arrival) {
	if a.last == nil {
		a.last = map[clustermesh.Origin]int64{}
	}
	for o := range records.Since(a.seen) {
		n := records.Get(o).Content.Node
		if n == nil || n.Canary == 0 || o.Cluster == self {
			delete(a.last, o)
			continue
		}
		last, before := a.last[o]
		if a.last[o] = n.Canary; !before || n.Canary <= last {
			continue
		}
		by, known := ahead(o)
		if took := now.Sub(time.UnixMilli(n.Canary).Add(-by)); known && took <= longest && took > -longest {
			// What is less than nothing is within the error of the clocks' difference.
			out = append(out, Arrival{o.Cluster, max(0, took)})
		}
	}
	a.seen = records
	return out
}
