package daemon

import (
	"time"

	"strait.io/strait/daemon/canary"
)

// canaries are those that this node sends while it leads, and those of other clusters.
type canaries struct {
	sender   canary.Sender
	arrivals canary.Arrivals
}

// canary returns the canary for this node's record, and schedules the turn that sends the next one.
func (d *Daemon) canary() int64 {
	c, in := d.canaries.sender.Next(d.gossip.Leader(), time.Now())
	if in > 0 {
		d.againIn(in)
	}
	return c
}

// noteCanaries counts the canaries in the records of a plan that is in force now. Those of a plan
// that failed count when they are in force.
func (r *round) noteCanaries() {
	if r.err != nil {
		return
	}
	var others []string
	for _, c := range r.in.State.Clusters() {
		if c != r.in.Self.Cluster {
			others = append(others, string(c))
		}
	}
	r.metrics.Remotes(others)
	for _, a := range r.canaries.arrivals.Note(r.in.State.Records, r.in.Self.Cluster, r.gossip.Ahead, time.Now()) {
		r.metrics.Propagated(string(a.Cluster), a.Took)
	}
}
