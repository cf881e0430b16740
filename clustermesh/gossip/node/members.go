package node

import (
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/observe"
)

const (
	// startGrace is how long a starting node waits to hear others before it probes nodes known from
	// disk, or leads its cluster.
	startGrace = 2 * time.Second
	// hintGrace is how long a starting node waits for hints to answer.
	hintGrace = 5 * time.Second
)

// MemberEvent is a change of the members, as memberlist reports it.
type MemberEvent struct {
	Member member.Peer
	Addr   netip.AddrPort
	Alive  bool
	// Owner is the UID of the cluster that owns the name of a refused member's cluster; empty if
	// the member was not refused.
	Owner string
}

// SetRunning starts or ends the daemon's part in gossip.
func (n *Node) SetRunning(running bool, now time.Time) {
	n.now = now
	n.running = running
	if running {
		n.started, n.nextTick = now, now
	}
	n.elect()
}

// Beat applies changes of the members, and does what is due with time. It is called several times a second,
// and after Actions.Beat. Strangers are Problems of what came to the port, by key.
func (n *Node) Beat(events []MemberEvent, strangers map[string]clustermesh.Problem, now time.Time) {
	n.now = now
	n.applyMembers(events)
	n.look()
	for key, p := range strangers {
		n.problem("strangers "+key, p, ProblemLife)
	}
	if n.problems.expire(now) {
		n.actions.Changed = true
	}
	if now.After(n.nextTick) {
		n.nextTick = now.Add(n.pause(time.Second))
		n.tick()
	}
}

// applyMembers applies memberlist's events, and updates the streams to the neighbours.
func (n *Node) applyMembers(events []MemberEvent) {
	if len(events) == 0 {
		return
	}
	for _, e := range events {
		switch {
		case e.Owner != "":
			n.refuse(e.Member, e.Owner, e.Addr.String())
			continue
		case e.Alive:
			n.contacts.Join(e.Member.ID, e.Addr, n.now)
			n.solved("seed " + e.Addr.String())
			n.solved("key " + e.Addr.String()) // the daemon was restarted with the right key
		default:
			n.contacts.Leave(e.Member.ID, n.now)
		}
		n.log(Debug, "member changed", "name", e.Member, "address", e.Addr, "alive", e.Alive)
	}
	n.regroup()
}

// look checks what can change with time alone: the leader, the owners of cluster names, the wait
// for hints, and duplicates.
func (n *Node) look() {
	if n.contacts.Sweep(n.now) {
		n.regroup()
	}
	n.review()
	n.hearLinks()
	n.hearClaims()
	n.elect()
	if n.trust.Stale(n.now) || n.cfg.Owners.Look(n.contacts.Alive().Clusters(), n.now) {
		n.readmit(nil)
	}
	if n.now.Sub(n.started) > hintGrace && n.seeds.Late() {
		n.actions.Changed = true
	}
	for o, addrs := range n.contacts.Duplicates(n.now) {
		var texts []string
		for _, a := range addrs {
			texts = append(texts, a.String())
		}
		slices.Sort(texts)
		key, p := "duplicate "+o.String(), duplicateProblem(o, texts...)
		if _, held := n.replica.Record(o); held {
			n.problem(key, p, ProblemLife)
		} else {
			n.strange(key, p)
		}
	}
}

// setQuotas sets how many nodes the pinned clusters can have. Without pins, all clusters share the default.
func (n *Node) setQuotas() {
	var quotas map[clustermesh.ClusterName]int
	if n.trust.Pins() != nil {
		quotas = map[clustermesh.ClusterName]int{}
	}
	for c, p := range n.trust.Pins() {
		quotas[c] = p.Quota.WithDefaults().Nodes
	}
	n.cfg.Room.SetQuotas(quotas)
}

// updateClaims updates the claims about silent nodes from what is observed.
func (n *Node) updateClaims() {
	if !n.witness.Update(n.contacts, n.replica.Records(), n.now) {
		return
	}
	n.log(Info, "claims changed", "silent", n.witness.Silences())
	if n.publish() {
		n.actions.Changed = true
	}
}

// Probed takes the result of a probe that began at a time.
func (n *Node) Probed(o clustermesh.Origin, v observe.Verdict, began, now time.Time) {
	n.now = now
	if before, after := n.contacts.Probed(o, v, began, now, n.cfg.Random); after != before {
		n.log(Info, "contact changed", "node", o, "from", before, "to", after)
		n.touch()
		// Not after every probe, because it looks at all nodes. The tick does so too, for what changes
		// by time alone.
		n.updateClaims()
	}
}

// Neighbours returns the members to keep streams to.
func (n *Node) Neighbours() []clustermesh.Origin { return n.replica.Neighbours() }
