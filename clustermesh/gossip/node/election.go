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

// elect updates the leader. A node that has just started, and knows of other daemons, waits until
// it hears one or startGrace is over. Otherwise each start of a node would cause an election.
func (n *Node) elect() {
	if n.cfg.Lead != nil {
		n.follow()
		return
	}
	// A leader gives way to a node that is alive. Until it is the leader, a node also waits for those
	// that have just become members and have proven nothing yet: usually they do so at once.
	alive := n.contacts.Alive()
	before := alive
	if !n.election.is {
		before = n.contacts.Expected()
	}
	lowest := n.running && !n.trust.Follower()
	for _, o := range before {
		if o.Cluster == n.cfg.Self.Cluster && o.Node < n.cfg.Self.Node && n.mayLead(o) {
			lowest = false
		}
	}
	if len(alive) == 0 && n.now.Sub(n.started) < startGrace && (n.seeds.Away() || n.areKnown()) {
		lowest = false
	}
	if n.election.update(lowest, n.now) {
		n.elected()
	}
}

// mayLead reports whether a node of this cluster can be elected: it has the root, if that matters. A
// node whose record was not proven can only be elected in the first moments, when no record is here yet:
// anyone who has the gossip key can claim any name.
func (n *Node) mayLead(o clustermesh.Origin) bool {
	r, known := n.replica.Record(o)
	switch {
	case !known:
		return n.trust.Pins() == nil || n.now.Sub(n.started) < startGrace
	case r.Content.Node == nil:
		return true
	}
	return !r.Content.Node.Follower
}

// follow adopts the result of the election, as Config.Lead reports it.
func (n *Node) follow() {
	is, since := n.cfg.Lead()
	is = is && n.running && !n.trust.Follower()
	next := election{is: is, since: max(since, n.election.since)}
	if is && next.since == n.election.since {
		next.corrected = n.election.corrected
	}
	if next != n.election {
		n.election = next
		n.elected()
	}
}

func (n *Node) elected() {
	n.cluster = nil // published in an earlier term
	n.trust.Elected()
	n.log(Info, "leadership changed", "cluster", n.cfg.Self.Cluster, "leading", n.election.is)
	n.touch()
}

// Leader reports whether this node writes the cluster's record.
func (n *Node) Leader() bool { return n.election.is }
