package gossip

import (
	"time"

	"strait.io/strait/clustermesh"
)

// leader says whether this node writes its cluster's record. It is pure.
type leader struct {
	is bool
	// since is when this node was elected, in Unix milliseconds. If its clock was ahead then, corrected
	// is when the daemon noticed; otherwise it is zero.
	since, corrected uint64
}

// epoch returns the epoch of what this node writes.
func (l leader) epoch() uint64 {
	if l.corrected > 0 {
		return l.corrected
	}
	return l.since
}

// correct makes what this node writes of its cluster count where the clock is right, if this machine's
// clock was ahead when the node was elected.
func (l *leader) correct(c clustermesh.ClusterName, now time.Time) {
	if l.is && ahead(clustermesh.Origin{Cluster: c}, l.epoch(), now) > 0 {
		l.corrected = uint64(now.UnixMilli())
	}
}

// update makes this node the leader if it has the lowest name of the live members. It reports
// whether anything changed.
func (l *leader) update(lowest bool, now time.Time) bool {
	if l.is == lowest {
		return false
	}
	l.is, l.corrected = lowest, 0
	if lowest {
		l.since = max(l.since+1, uint64(now.UnixMilli()))
	}
	return true
}

// elect updates the leader. A node that has just started, and knows of other daemons, waits until
// it hears one or startGrace is over. Otherwise each start of a node would cause an election. The
// lock is held.
func (g *Gossip) elect(started, now time.Time) {
	if g.cfg.Lead != nil {
		g.follow()
		return
	}
	// A leader gives way to a node that is alive. Until it is the leader, a node also waits for those
	// that have just become members and have proven nothing yet: usually they do so at once.
	alive := g.contacts.Alive()
	before := alive
	if !g.leader.is {
		before = g.contacts.Expected()
	}
	lowest := g.running && !g.trust.Follower()
	for _, o := range before {
		if o.Cluster == g.cfg.Self.Cluster && o.Node < g.cfg.Self.Node && g.mayLead(o, started, now) {
			lowest = false
		}
	}
	if len(alive) == 0 && now.Sub(started) < startGrace && (g.seeds.Away() || g.knowsOthers()) {
		lowest = false
	}
	if g.leader.update(lowest, now) {
		g.elected()
	}
}

// mayLead reports whether a node of this cluster stands for election: it has the root, if that matters. A
// node whose record was not proven stands only in the first moments, when no record is here yet:
// whoever has the gossip key can claim any name. The lock is held.
func (g *Gossip) mayLead(o clustermesh.Origin, started, now time.Time) bool {
	r, known := g.replica.Record(o)
	switch {
	case !known:
		return g.trust.Pins() == nil || now.Sub(started) < startGrace
	case r.Content.Node == nil:
		return true
	}
	return !r.Content.Node.Follower
}

// follow adopts the result of the election, as Config.Lead reports it. The lock is held.
func (g *Gossip) follow() {
	is, since := g.cfg.Lead()
	is = is && g.running && !g.trust.Follower()
	next := leader{is: is, since: max(since, g.leader.since)}
	if is && next.since == g.leader.since {
		next.corrected = g.leader.corrected
	}
	if next != g.leader {
		g.leader = next
		g.elected()
	}
}

func (g *Gossip) elected() {
	g.cluster = nil // published in an earlier term
	g.trust.Elected()
	g.log.Info("leadership changed", "cluster", g.cfg.Self.Cluster, "leading", g.leader.is)
	g.touch()
}

func (g *Gossip) knowsOthers() bool {
	for o := range g.replica.Records() {
		if o.Node != "" && o != g.cfg.Self {
			return true
		}
	}
	return false
}
