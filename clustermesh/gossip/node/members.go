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

// SetRunning says that the daemon takes part in gossip from now on, or does not any more.
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

// regroup keeps streams to the neighbours among the members of now.
func (n *Node) regroup() {
	out := n.replica.SetMembers(n.contacts.Members())
	n.actions.Regrouped, n.actions.Neighbours = true, n.replica.Neighbours()
	n.apply(out)
	n.touch()
	n.updateClaims()
}

// look checks what can change with time alone: the leader, the owners of cluster names, the wait
// for hints, and duplicates.
func (n *Node) look() {
	if n.contacts.Sweep(n.now) {
		n.regroup()
	}
	n.elect()
	if n.trust.Stale(n.now) || n.cfg.Owners.Look(n.contacts.Alive(), n.now) {
		n.readmit()
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

// knowMembers tells the room which nodes have records here, or are listed by their clusters.
func (n *Node) knowMembers() {
	known := map[clustermesh.Origin]bool{n.cfg.Self: true}
	for o, r := range n.replica.Records() {
		if o.Node != "" {
			known[o] = true
		}
		for _, name := range r.Content.Nodes {
			known[clustermesh.Origin{Cluster: o.Cluster, Node: name}] = true
		}
	}
	n.cfg.Room.Know(known)
}

// setQuotas tells the room how many nodes the pinned clusters can have. If none is pinned, all can have as
// many.
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

// alive notes a sign of life of a node.
func (n *Node) alive(o clustermesh.Origin, note func(now time.Time)) {
	before := n.contacts.Contact(o)
	note(n.now)
	if n.contacts.Contact(o) != before {
		n.touch()
		n.actions.Beat = true // the leader may have to give way
	}
}

// Probe is a machine to probe, at all its addresses.
type Probe struct {
	Node  clustermesh.Origin
	Addrs []netip.AddrPort
}

// Probes returns the probes that are due. Probed takes the result of each.
func (n *Node) Probes(now time.Time) (out []Probe) {
	if now.Sub(n.started) <= startGrace {
		return nil
	}
	records := n.replica.Records()
	for _, o := range n.contacts.Due(records, now) {
		out = append(out, Probe{o, n.contacts.ProbeAddrs(o, records[o])})
	}
	return out
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

// Place is a node, and where to dial it.
type Place struct {
	Node clustermesh.Origin
	At   netip.AddrPort
}

// Unmet returns the members to ask who they are, because they have not proven that they are there. Asked
// takes the result of each.
func (n *Node) Unmet(now time.Time) (out []Place) {
	for _, o := range n.contacts.Unmet(now) {
		out = append(out, Place{o, n.Addr(o, now)})
	}
	return out
}

// Asked takes the result of asking a member who it is: whether it has proven to be that node. Stopped is
// true if the daemon ends, so that the result means nothing.
func (n *Node) Asked(p Place, proven, stopped bool, now time.Time) {
	n.now = now
	if !proven && !stopped {
		n.dialled(p.Node, p.At, false)
	}
	n.contacts.Asked(p.Node, now, n.cfg.Random)
}

// Addr returns where to dial a node.
func (n *Node) Addr(o clustermesh.Origin, now time.Time) netip.AddrPort {
	r, _ := n.replica.Record(o)
	return n.contacts.Place(o, r, now)
}

// Missed notes that a node did not prove who it is where it was dialled.
func (n *Node) Missed(o clustermesh.Origin, at netip.AddrPort, now time.Time) {
	n.now = now
	n.dialled(o, at, false)
}

// dialled notes whether a node proved who it is where it was dialled.
func (n *Node) dialled(o clustermesh.Origin, at netip.AddrPort, proven bool) {
	r, _ := n.replica.Record(o)
	if n.contacts.Dialled(o, r, at, proven, n.now) {
		n.touch()
	}
}

// isAt reports whether a node is at an address, as more than memberlist reports.
func (n *Node) isAt(o clustermesh.Origin, at netip.Addr) bool {
	r, _ := n.replica.Record(o)
	return n.contacts.Trusted(o, r, at)
}

// Pinged notes how long another cluster's node took to answer.
func (n *Node) Pinged(m member.ID, at netip.Addr, rtt time.Duration, now time.Time) {
	if m.Origin.Cluster != n.cfg.Self.Cluster && n.isAt(m.Origin, at) {
		n.distances.Ping(m.Origin, rtt, now)
	}
}

// measure looks at the distances of clusters.
func (n *Node) measure() {
	others := slices.DeleteFunc(n.contacts.Alive(), func(o clustermesh.Origin) bool { return o.Cluster == n.cfg.Self.Cluster })
	if !n.distances.Update(others, n.now) {
		return
	}
	n.actions.Distances = n.distances.Steps()
	n.log(Info, "the distances of clusters changed", "steps", n.actions.Distances)
	n.actions.Changed = true
}

// RTTs returns the round-trip times of other clusters' nodes, the shortest of the last pings.
func (n *Node) RTTs() map[clustermesh.Origin]time.Duration { return n.distances.RTTs() }

// Distances returns how far away clusters are that are not among the nearest, in steps; see
// observe.Distances.
func (n *Node) Distances() map[clustermesh.ClusterName]uint32 { return n.distances.Steps() }

// Contacts returns how this node sees the others. It changes with each event.
func (n *Node) Contacts() *observe.Contacts { return n.contacts }

// Neighbours returns the members to keep streams to.
func (n *Node) Neighbours() []clustermesh.Origin { return n.replica.Neighbours() }
