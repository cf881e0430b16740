package node

import (
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/observe"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// pulse is how long a hint waits at least, and half of how long it waits at most: longer than a record
// takes by the way that it should come.
const pulse = 50 * time.Millisecond

// Pulse sends what has waited for a moment.
func (n *Node) Pulse(now time.Time) {
	n.now, n.pulses = now, false
	n.apply(n.replica.Pulse())
}

// apply does what the replica decided, and reports a change of State.
func (n *Node) apply(out replica.Output) {
	if n.carryOut(out) {
		n.actions.Changed = true
	}
}

// carryOut does what the replica decided, and returns whether State changed.
func (n *Node) carryOut(out replica.Output) (changed bool) {
	n.actions.Send = append(n.actions.Send, out.Send...)
	n.contacts.Follow(out.Neighbours, n.now)
	if !n.pulses && n.replica.Waits() {
		n.pulses, n.actions.Pulse = true, pulse
	}
	if n.actions.Neighbours == nil {
		n.actions.Neighbours = out.Neighbours
	} else {
		maps.Copy(n.actions.Neighbours, out.Neighbours)
	}
	for _, p := range out.Problems {
		if n.behind && p.Code == problem.RecordAhead {
			continue // one Problem reports it of all
		}
		key := "replica " + string(p.Code) + " " + p.Object
		if p.Code == problem.ClusterNotPinned || p.Code == problem.RecordRejected {
			n.strange(key, p) // a peer without proof can make these at will
			continue
		}
		n.problem(key, p, ProblemLife)
	}
	if len(out.Changed) == 0 {
		return false
	}
	if slices.Contains(out.Changed, n.cfg.Self) { // no other node writes it
		n.arrived([]clustermesh.Origin{n.cfg.Self}, n.cfg.Self)
	}
	n.stale = true
	n.actions.Dirty = append(n.actions.Dirty, out.Changed...)
	return true
}

// admit is replica.Config.Admit: it refuses what its origin may not write and, of a cluster that is not
// pinned, records of another cluster than its name belongs to.
func (n *Node) admit(by replica.Peer, e replica.Entry) (clustermesh.Record, clustermesh.Problem, bool) {
	r := e.Record
	if err := member.CheckUID(r.UID); err != nil {
		return clustermesh.Record{}, n.trust.Refuse(r.Origin, by, err, n.now), false
	}
	if owner, ok := n.cfg.Owners.Belongs(r.Origin.Cluster, r.UID); !ok {
		return clustermesh.Record{}, passedOnProblem(r.Origin.Cluster, owner, r.UID, by), false
	}
	return n.trust.Admit(by, e, n.now)
}

// Connected notes that a stream to a neighbour begins, on which both write or only this node does.
func (n *Node) Connected(to clustermesh.Origin, bothWays bool, now time.Time) {
	n.now = now
	n.apply(n.replica.Connected(to, bothWays))
	if bothWays && !n.ways.said.Equal(observe.Report{}) {
		n.sayLinks(to)
	}
}

// Dropped notes that messages to a neighbour were dropped.
func (n *Node) Dropped(to clustermesh.Origin, now time.Time) {
	n.now = now
	n.apply(n.replica.Dropped(to))
}

// Repin replaces the pins, and admits the records again for which that may make a difference.
func (n *Node) Repin(pins authority.Pins, now time.Time) {
	n.now = now
	again := n.trust.Repin(pins)
	n.setQuotas()
	n.cfg.Owners.SetPinned(n.trust.Pins() != nil)
	// What was refused may be believed now; otherwise it is reported again.
	n.problems.clearAll("replica ")
	n.readmit(again)
	if own, held := n.replica.Record(n.cfg.Self); held {
		n.trust.CheckOwn(own)
	}
}

// SetLax sets whether everyone is believed in spite of the pins.
func (n *Node) SetLax(lax bool, now time.Time) {
	if n.trust.SetLax(lax) {
		n.Repin(n.trust.Listed(), now)
	}
}

// Accept sets which clusters' Services the namespaces of this cluster accept, and which namespaces are
// local.
func (n *Node) Accept(a clustermesh.Accept, l clustermesh.LocalNamespaces, now time.Time) {
	n.now = now
	if n.trust.SetAccept(a, l) {
		n.readmit(nil)
	}
}

// readmit admits the records of some clusters again, of all if which is nil.
func (n *Node) readmit(which func(clustermesh.ClusterName) bool) {
	n.actions.Dirty = append(n.actions.Dirty, n.replica.Readmit(which)...)
	n.touch()
}

// tick does what is due about once a second.
func (n *Node) tick() {
	out := n.replica.Tick(n.cfg.Random)
	for _, o := range out.Changed {
		if _, held := n.replica.Record(o); !held {
			delete(n.ways.arrivals, o)
			n.log(Info, "node left its cluster", "node", o)
		}
	}
	n.apply(out)
	if n.replica.ColdStart(n.everySeed) {
		n.actions.Changed = true
	}
	n.measure()
	n.checkClock()
	n.dropClocks()
	n.renewStatement()
	n.contacts.Forget(n.replica.Records(), n.now)
	n.knowMembers()
	n.updateClaims()
	n.reviewStatements()
	if n.publishCluster() {
		n.actions.Changed = true
	}
}
