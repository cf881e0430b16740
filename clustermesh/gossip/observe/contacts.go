// Package observe decides what this node knows about others: whether a daemon is heard, whether
// its machine answers, which nodes to probe and when, and which machines to claim silent.
//
// Inputs are the observations of other packages with their times (memberlist's members, streams
// that open, carry frames and close, probes), and the records held. Outputs are each node's
// Contact, the nodes to probe, and the claims that go into this node's record. Package clustermesh
// decides what the claims of all nodes amount to. Package observe must not know memberlist, sockets
// or the clock.
package observe

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// records are the records held, by origin.
type records = clustermesh.ByOrigin[clustermesh.Record]

// Contacts is what this node observes of others. It is not safe for concurrent use.
//
// A node is alive if memberlist calls a life of its daemon alive, and that life has proven, on a
// TLS connection, that it is there (Met). Neither is enough: memberlist's datagrams can be captured
// and replayed later, when the node is gone, and memberlist watches a node all the time. A node of
// another cluster to which no stream is wanted need not prove that while relays hear its cluster: it
// is Reported. For a node that is not heard, what matters is whether its machine answers a TCP connect. Probing begins
// before memberlist has decided, as soon as the node's stream falls silent, so that both verdicts
// arrive at about the same time. A node that is not a neighbour has no stream, and is probed once
// memberlist has lost it.
type Contacts struct {
	self  clustermesh.Origin
	nodes map[clustermesh.Origin]*contact
	index
	known  records                           // of the last call of Know
	proven clustermesh.Draft[netip.AddrPort] // where dials proved who the nodes are
	// polling is true while a claim waits for more than half of the cluster to show that it is there.
	polling bool
	spent   int       // addresses probed since began, at most probeBudget
	began   time.Time // of the current second
	// linked are the other clusters that relays hear.
	linked map[clustermesh.ClusterName]bool
	// pinned reports whether a cluster's records hold only addresses that its root stated.
	pinned func(clustermesh.ClusterName) bool
}

// NewContacts returns Contacts without any other node.
func NewContacts(self clustermesh.Origin) *Contacts {
	c := &Contacts{self: self, nodes: map[clustermesh.Origin]*contact{}, pinned: func(clustermesh.ClusterName) bool { return false }}
	c.contacts.Set(self, clustermesh.Alive)
	return c
}

// Pin sets of which clusters the records hold only addresses that their roots stated. At first there are
// none.
func (c *Contacts) Pin(pinned func(clustermesh.ClusterName) bool) { c.pinned = pinned }

// Restore marks as silent the nodes that this node claimed silent before its daemon was restarted:
// a claim is lifted by a sign of life, not by a restart of the witness.
func (c *Contacts) Restore(claims []clustermesh.Silence) {
	for _, s := range claims {
		n := c.node(s.Origin)
		n.rounds = silentRounds
		c.note(n)
	}
}

// node returns the contact with a node, for a change of it; note must follow.
func (c *Contacts) node(o clustermesh.Origin) *contact {
	if n := c.nodes[o]; n != nil {
		return n
	}
	return c.add(o)
}

// look returns the contact with a node as it is; that of an unknown node is empty.
func (c *Contacts) look(o clustermesh.Origin) *contact {
	if n := c.nodes[o]; n != nil {
		return n
	}
	return &contact{origin: o}
}

// Join notes that memberlist calls a member alive.
func (c *Contacts) Join(m member.ID, addr netip.AddrPort, now time.Time) {
	n := c.node(m.Origin)
	n.join(m.Boot, addr, now)
	c.note(n)
}

// Leave notes that a member is gone. The node is gone when its last life is gone. A holder of the gossip key
// can claim that of any member, so one of a pinned cluster stays while its stream carries frames; see Sweep.
func (c *Contacts) Leave(m member.ID, now time.Time) {
	n := c.node(m.Origin)
	defer c.note(n)
	if !c.pinned(m.Origin.Cluster) || !n.isHeard(m.Boot, now) {
		n.leave(m.Boot, now)
		return
	}
	n.life(m.Boot).gone = true
}

// Sweep ends the lives that memberlist called gone, and whose streams now carry nothing either. It reports
// whether there were any.
func (c *Contacts) Sweep(now time.Time) (ended bool) {
	for i := range c.slots {
		n := c.slots[i].contact
		if c.slots[i].is&isParting == 0 {
			continue
		}
		for _, l := range slices.Clone(n.lives) {
			if l.gone && !n.isHeard(l.boot, now) {
				n.leave(l.boot, now)
				ended = true
			}
		}
		c.note(n)
	}
	return ended
}

// Met notes that a life of a node's daemon has just proven that it is there: it completed a TLS
// handshake, or sent a frame on a stream. A recording of either proves nothing to another connection. Met
// reports whether the contact with the node changed.
func (c *Contacts) Met(m member.ID, now time.Time) (changed bool) {
	n := c.node(m.Origin)
	if n.known(m.Boot) { // as at nearly all heartbeats: then only times change
		n.metAt, n.heard, n.framed = now, now, now
		c.slots[n.at].framed = now
		return false
	}
	before := n.state()
	n.meet(m.Boot, now)
	c.note(n)
	return n.state() != before
}

// Frame notes a frame on a stream from the node, and reports whether the contact with it changed.
func (c *Contacts) Frame(m member.ID, now time.Time) (changed bool) { return c.Met(m, now) }

// Stream notes that a stream from the node opened (+1) or closed (-1), and reports whether the
// contact with it changed.
func (c *Contacts) Stream(m member.ID, delta int, now time.Time) (changed bool) {
	n := c.node(m.Origin)
	before := n.state()
	n.streams += delta
	n.follow.had = true
	if n.streams == 0 {
		n.follow.since = now
	}
	if delta > 0 {
		n.streamed = true
		n.meet(m.Boot, now)
	} else if n.streams == 0 {
		n.due = now
	}
	c.note(n)
	return n.state() != before
}

// HasStream reports whether there is a stream from a node.
func (c *Contacts) HasStream(o clustermesh.Origin) bool { return c.look(o).streams > 0 }

// Unmet returns the members to ask now who they are: those that have not proven that they are
// there, and those whose streams carry nothing while their machine answers. They are marked as
// being asked, until Asked is called for each. Those that wait longest come first. Most members
// prove that they are there by a stream before it comes to that.
func (c *Contacts) Unmet(now time.Time) (out []clustermesh.Origin) {
	var unmet []*contact
	for i := range c.slots {
		if n := c.slots[i].contact; c.slots[i].is&isUnproven != 0 && n.unmet(now) {
			unmet = append(unmet, n)
		}
	}
	order := func(a, b *contact) int { return cmp.Or(a.ask.Compare(b.ask), a.origin.Compare(b.origin)) }
	for _, n := range first(unmet, maxAsking-c.asking, order) { // the others stay unmet
		n.asking = true
		c.note(n)
		out = append(out, n.origin)
	}
	return out
}

// Asked notes that a member was asked who it is. If it answered, Met was called. Asked reports whether
// the contact with the node changed because it did not.
func (c *Contacts) Asked(o clustermesh.Origin, now time.Time, rng *rand.Rand) (changed bool) {
	n := c.node(o)
	before := n.state()
	n.asking, n.ask = false, now.Add(jitter(reprobe, rng))
	n.denied = n.claimed && !n.met()
	c.note(n)
	return n.state() != before
}

// OneSided reports whether a neighbour is a member here but may not have heard of this node: it opens
// no stream. A daemon that was restarted is heard by what it answers, before it knows who asks.
func (c *Contacts) OneSided(o clustermesh.Origin, now time.Time) bool {
	n := c.nodes[o]
	return n != nil && n.oneSided(now)
}

// Contact returns the contact with a node in any of its lives.
func (c *Contacts) Contact(o clustermesh.Origin) clustermesh.Contact { return c.look(o).state() }

// Due returns which of the known nodes to probe now, and marks them as being probed, until Probed
// is called for each. Nodes of our own cluster come first, because our cluster decides whether they
// are dead, and then those that wait longest. How many addresses that are in a second is bounded.
func (c *Contacts) Due(known records, now time.Time) (due []clustermesh.Origin) {
	c.Know(known)
	var wanted []*contact
	for i := range c.slots {
		s := &c.slots[i]
		if (s.is&isLost != 0 || s.is&isWatched != 0 && now.Sub(s.framed) > stalled) && s.wanted(now) || c.polls(s, now) {
			wanted = append(wanted, s.contact)
		}
	}
	for _, n := range first(wanted, maxProbing-c.probing, c.compareDue) { // the others stay due
		if !c.spend(len(c.ProbeAddrs(n.origin, known.Get(n.origin))), now) {
			break
		}
		n.probing = true
		c.note(n)
		due = append(due, n.origin)
	}
	return due
}

// polls reports whether to probe a node only to see whether it is there.
func (c *Contacts) polls(s *slot, now time.Time) bool {
	return c.polling && s.is&isAlive != 0 && !s.far && !s.probing && !s.isFresh(now) && !now.Before(s.due)
}

// compareDue orders nodes by who is to be probed first.
func (c *Contacts) compareDue(a, b *contact) int {
	farA, farB := a.origin.Cluster != c.self.Cluster, b.origin.Cluster != c.self.Cluster
	switch {
	case farA == farB:
		return cmp.Or(a.due.Compare(b.due), a.origin.Compare(b.origin))
	case farA:
		return 1
	}
	return -1
}

// spend takes n addresses from the budget of the current second, if they are left.
func (c *Contacts) spend(n int, now time.Time) bool {
	if now.Sub(c.began) >= time.Second {
		c.began, c.spent = now, 0
	}
	if c.spent+n > probeBudget {
		return false
	}
	c.spent += n
	return true
}

// Probed notes the verdict of a probe and when it began. It returns the contact before and after.
func (c *Contacts) Probed(o clustermesh.Origin, v Verdict, began, now time.Time, rng *rand.Rand) (before, after clustermesh.Contact) {
	n := c.node(o)
	before = n.state()
	n.probed(v, began, now, rng)
	c.note(n)
	return before, n.state()
}

// renew forgets the silence of a node whose record shows a later life than the one claimed silent.
func (c *Contacts) renew(n *contact, now time.Time) {
	n.rounds, n.due = 0, now
	c.note(n)
}

// Forget drops the nodes without a record, except those that are live members, have a stream, are being
// probed, or have just proven that they are there: they may be about to become members.
func (c *Contacts) Forget(known records, now time.Time) {
	c.Know(known)
	for i := len(c.slots) - 1; i >= 0; i-- {
		if n := c.slots[i].contact; c.slots[i].is&isIdle != 0 && now.Sub(n.metAt) >= metAge {
			c.remove(n)
		}
	}
}

// Alive returns the other nodes that are alive or reported.
func (c *Contacts) Alive() clustermesh.ByOrigin[bool] { return c.alive.Share() }

// Members returns the other nodes that memberlist calls alive, sorted: those to keep streams to.
// The list is never changed afterwards.
func (c *Contacts) Members() []clustermesh.Origin { return c.members.sorted() }

// Expected returns the other nodes that are alive or may be: members of which nothing else is known
// yet.
func (c *Contacts) Expected() clustermesh.ByOrigin[bool] { return c.expected.Share() }

// Addr returns the address of the life of a node that last proved that it is there, or else of the
// one that started last, or where the node was last a member; zero if unknown.
func (c *Contacts) Addr(o clustermesh.Origin) netip.AddrPort {
	if n := c.nodes[o]; n != nil {
		return n.where()
	}
	return netip.AddrPort{}
}

// Duplicates returns the nodes that have had lives at two or more addresses for longer than
// duplicateAge, with the addresses.
func (c *Contacts) Duplicates(now time.Time) map[clustermesh.Origin][]netip.AddrPort {
	out := map[clustermesh.Origin][]netip.AddrPort{}
	for i := range c.slots {
		if c.slots[i].is&isSeveral == 0 {
			continue
		}
		if addrs := c.slots[i].duplicates(now); len(addrs) > 0 {
			out[c.slots[i].origin] = addrs
		}
	}
	return out
}

// All returns the contact with each node, in the life that wrote its record. Nodes that are Held
// are left out.
func (c *Contacts) All(known records) clustermesh.ByOrigin[clustermesh.Contact] {
	c.Know(known)
	return c.contacts.Share()
}

// Heard returns when each other node's daemon was last heard.
func (c *Contacts) Heard() map[clustermesh.Origin]time.Time {
	out := map[clustermesh.Origin]time.Time{}
	for o, n := range c.nodes {
		if o != c.self && !n.heard.IsZero() {
			out[o] = n.heard
		}
	}
	return out
}

// ProbeAddrs returns the addresses at which to probe the machine of a node. A holder of the gossip key
// can claim where a node is a member, and answer there for a machine that is gone. So if its cluster is
// pinned, a place that its record does not name counts only if the node proved there that it is that, and
// never proved it at one that the record names: a machine that passes packets on can be in between.
func (c *Contacts) ProbeAddrs(o clustermesh.Origin, rec clustermesh.Record) []netip.AddrPort {
	switch n := c.look(o); {
	case !c.pinned(o.Cluster):
		return ProbeAddrs(rec, n.where())
	case n.stated:
		return ProbeAddrs(rec, netip.AddrPort{})
	default:
		return ProbeAddrs(rec, n.metAddr)
	}
}

// ProbeAddrs returns the addresses where a machine can answer: the first few on the underlay, the one
// inside the tunnel, and the one where it was last a member.
func ProbeAddrs(rec clustermesh.Record, last netip.AddrPort) []netip.AddrPort {
	var out []netip.AddrPort
	add := func(a netip.AddrPort) {
		if a.Addr().IsValid() && a.Port() != 0 && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	if n := rec.Content.Node; n != nil {
		for _, a := range n.Addresses[:min(len(n.Addresses), maxAddrs)] {
			add(netip.AddrPortFrom(a, n.GossipPort))
		}
		add(netip.AddrPortFrom(n.Inside, n.GossipPort))
	}
	add(last)
	return out
}
