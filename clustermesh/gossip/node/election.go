package node

import (
	"time"

	"strait.io/strait/clustermesh"
)

// election is whether this node writes its cluster's record.
type election struct {
	is bool
	// since is when this node was elected, in Unix milliseconds. If its clock was ahead then, corrected
	// is when the daemon noticed; otherwise it is zero.
	since, corrected uint64
}

// epoch returns the epoch of what this node writes.
func (e election) epoch() uint64 {
	if e.corrected > 0 {
		return e.corrected
	}
	return e.since
}

// correct makes what this node writes of its cluster count where the clock is right, if this machine's
// clock was ahead when the node was elected.
func (e *election) correct(c clustermesh.ClusterName, now time.Time) {
	if e.is && ahead(clustermesh.Origin{Cluster: c}, e.epoch(), now) > 0 {
		e.corrected = uint64(now.UnixMilli())
	}
}

// update makes this node the leader if it has the lowest name of the live members. It reports
// whether anything changed.
func (e *election) update(lowest bool, now time.Time) bool {
	if e.is == lowest {
		return false
	}
	e.is, e.corrected = lowest, 0
	if lowest {
		e.since = max(e.since+1, uint64(now.UnixMilli()))
	}
	return true
}

// leadership is whether this node leads, and what it then writes of its cluster.
type leadership struct {
	*core
	*observer
	*statements
	election
	running   bool
	cluster   *clustermesh.Content // as published by this leader; nil before that
	clusterAt time.Time            // earliest time of the next write of the cluster's record
}

// elect updates the leader. A node that has just started, and knows of other daemons, waits until
// it hears one or startGrace is over. Otherwise each start of a node would cause an election.
func (l *leadership) elect() {
	if l.cfg.Lead != nil {
		l.follow()
		return
	}
	// A leader gives way to a node that is alive. Until it is the leader, a node also waits for those
	// that have just become members and have proven nothing yet: usually they do so at once.
	alive := l.contacts.Alive()
	before := alive
	if !l.is {
		before = l.contacts.Expected()
	}
	lowest := l.running && !l.trust.Follower()
	for o := range before.Of(l.cfg.Self.Cluster) {
		lowest = lowest && !(o.Node < l.cfg.Self.Node && l.mayLead(o))
	}
	if alive.Len() == 0 && l.now.Sub(l.started) < startGrace && (l.seeds.Away() || l.areKnown()) {
		lowest = false
	}
	if l.election.update(lowest, l.now) {
		l.elected()
	}
}

// mayLead reports whether a node of this cluster can be elected: it has the root, if that matters. A
// node whose record was not proven can only be elected in the first moments, when no record is here yet:
// anyone who has the gossip key can claim any name.
func (l *leadership) mayLead(o clustermesh.Origin) bool {
	r, known := l.records.Record(o)
	switch {
	case !known:
		return l.trust.Pins() == nil || l.now.Sub(l.started) < startGrace
	case r.Content.Node == nil:
		return true
	}
	return !r.Content.Node.Follower
}

// follow adopts the result of the election, as Config.Lead reports it.
func (l *leadership) follow() {
	is, since := l.cfg.Lead()
	is = is && l.running && !l.trust.Follower()
	next := election{is: is, since: max(since, l.election.since)}
	if is && next.since == l.election.since {
		next.corrected = l.election.corrected
	}
	if next != l.election {
		l.election = next
		l.elected()
	}
}

func (l *leadership) elected() {
	l.cluster = nil // published in an earlier term
	l.trust.Elected()
	l.log(Info, "leadership changed", "cluster", l.cfg.Self.Cluster, "leading", l.is)
	l.touch()
}

// Leader reports whether this node writes the cluster's record.
func (l *leadership) Leader() bool { return l.is }
