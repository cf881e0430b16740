// Package observe decides what this node can say about others: whether a daemon is heard, whether
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
	"maps"
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
// A node is alive if memberlist calls a life of its daemon alive, and that life has proven, on a TLS
// connection, that it is there (Met). Neither is enough: memberlist's datagrams can be captured and
// replayed later, when the node is gone, and memberlist watches a node all the time. For a node that is not alive, what
// matters is whether its machine answers a TCP connect. Probing begins before memberlist has decided, as soon as the
// node's stream falls silent, so that both verdicts arrive at about the same time. A node that is
// not a neighbour has no stream, and is probed once memberlist has lost it.
type Contacts struct {
	self  clustermesh.Origin
	nodes map[clustermesh.Origin]*contact
	spent int       // addresses probed since began, at most probeBudget
	began time.Time // of the current second
	// pinned reports whether a cluster's records hold only addresses that its root stated.
	pinned func(clustermesh.ClusterName) bool
}

// NewContacts returns Contacts without any other node.
func NewContacts(self clustermesh.Origin) *Contacts {
	return &Contacts{self: self, nodes: map[clustermesh.Origin]*contact{}, pinned: func(clustermesh.ClusterName) bool { return false }}
}

// Pin says of which clusters the records hold only addresses that their roots stated. At first there are
// none.
func (c *Contacts) Pin(pinned func(clustermesh.ClusterName) bool) { c.pinned = pinned }

// Restore marks as silent the nodes that this node claimed silent before its daemon was restarted:
// a claim is lifted by a sign of life, not by a restart of the witness.
func (c *Contacts) Restore(claims []clustermesh.Silence) {
	for _, s := range claims {
		c.node(s.Origin).rounds = silentRounds
	}
}

func (c *Contacts) node(o clustermesh.Origin) *contact {
	n := c.nodes[o]
	if n == nil {
		n = &contact{lives: map[uint64]life{}}
		c.nodes[o] = n
	}
	return n
}

// Join notes that memberlist calls a member alive.
func (c *Contacts) Join(m member.ID, addr netip.AddrPort, now time.Time) {
	c.node(m.Origin).join(m.Boot, addr, now)
}

// Leave notes that a member is gone. The node is gone when its last life is gone. A holder of the gossip key
// can say so of any member, so one of a pinned cluster stays while its stream speaks; see Sweep.
func (c *Contacts) Leave(m member.ID, now time.Time) {
	n := c.node(m.Origin)
	if !c.pinned(m.Origin.Cluster) || !n.speaks(m.Boot, now) {
		n.leave(m.Boot, now)
		return
	}
	l := n.lives[m.Boot]
	l.gone = true
	n.lives[m.Boot] = l
}

// Sweep ends the lives that memberlist called gone, and whose streams now say nothing either. It reports
// whether there were any.
func (c *Contacts) Sweep(now time.Time) (ended bool) {
	for _, n := range c.nodes {
		for boot, l := range n.lives {
			if l.gone && !n.speaks(boot, now) {
				n.leave(boot, now)
				ended = true
			}
		}
	}
	return ended
}

// Met notes that a life of a node's daemon has just proven that it is there: it completed a TLS
// handshake, or sent a frame on a stream. A recording of either proves nothing to another connection.
func (c *Contacts) Met(m member.ID, now time.Time) { c.node(m.Origin).meet(m.Boot, now) }

// Frame notes a frame on a stream from the node.
func (c *Contacts) Frame(m member.ID, now time.Time) { c.Met(m, now) }

// Stream notes that a stream from the node opened (+1) or closed (-1).
func (c *Contacts) Stream(m member.ID, delta int, now time.Time) {
	n := c.node(m.Origin)
	n.streams += delta
	if delta > 0 {
		n.streamed = true
		c.Frame(m, now)
	} else if n.streams == 0 {
		n.due = now
	}
}

// Unmet returns the members to ask now who they are: those that have not proven that they are there,
// and those that say nothing while their machine answers. They are marked as being asked, until Asked
// is called for each. Those that wait longest come first. Most members prove that they are there by a stream
// before it comes to that.
func (c *Contacts) Unmet(now time.Time) (out []clustermesh.Origin) {
	asking := 0
	for _, n := range c.nodes {
		if n.asking {
			asking++
		}
	}
	for o, n := range c.nodes {
		if o != c.self && n.unmet(now) {
			out = append(out, o)
		}
	}
	c.sort(out, func(n *contact) time.Time { return n.ask })
	out = out[:max(0, min(len(out), maxAsking-asking))] // the others stay unmet
	for _, o := range out {
		c.nodes[o].asking = true
	}
	return out
}

// sort sorts nodes by a time, and then by name.
func (c *Contacts) sort(os []clustermesh.Origin, by func(*contact) time.Time) {
	slices.SortFunc(os, func(a, b clustermesh.Origin) int {
		return cmp.Or(by(c.nodes[a]).Compare(by(c.nodes[b])), a.Compare(b))
	})
}

// Asked notes that a member was asked who it is. If it answered, Met was called.
func (c *Contacts) Asked(o clustermesh.Origin, now time.Time, rng *rand.Rand) {
	n := c.node(o)
	n.asking, n.ask = false, now.Add(jitter(reprobe, rng))
}

// OneSided reports whether a neighbour is a member here but may not have heard of this node: it opens
// no stream. A daemon that was restarted is heard by what it answers, before it knows who asks.
func (c *Contacts) OneSided(o clustermesh.Origin, now time.Time) bool {
	n := c.nodes[o]
	return n != nil && n.oneSided(now)
}

// Contact returns the contact with a node in any of its lives.
func (c *Contacts) Contact(o clustermesh.Origin) clustermesh.Contact { return c.node(o).state() }

// Due returns which of the known nodes to probe now, and marks them as being probed, until Probed
// is called for each. Nodes of our own cluster come first, because our cluster decides whether they
// are dead, and then those that wait longest. How many addresses that are in a second is bounded.
func (c *Contacts) Due(known records, now time.Time) []clustermesh.Origin {
	room := maxProbing
	for _, n := range c.nodes {
		if n.probing {
			room--
		}
	}
	var near, far []clustermesh.Origin
	for o := range known.All() {
		switch {
		case o.Node == "" || o == c.self || !c.node(o).wanted(now):
		case o.Cluster == c.self.Cluster:
			near = append(near, o)
		default:
			far = append(far, o)
		}
	}
	since := func(n *contact) time.Time { return n.due }
	c.sort(near, since)
	c.sort(far, since)
	due := append(near, far...)
	due = due[:max(0, min(len(due), room))] // the others stay due
	for i, o := range due {
		if !c.spend(len(c.ProbeAddrs(o, known.Get(o))), now) {
			return due[:i]
		}
		c.node(o).probing = true
	}
	return due
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
	return before, n.state()
}

// renew forgets the silence of a node whose record shows a later life than the one claimed silent.
func (c *Contacts) renew(o clustermesh.Origin, now time.Time) {
	n := c.node(o)
	n.rounds, n.due = 0, now
}

// Forget drops the nodes without a record, except those that are live members, have a stream, are being
// probed, or have just proven that they are there: they may be about to become members.
func (c *Contacts) Forget(known records, now time.Time) {
	maps.DeleteFunc(c.nodes, func(o clustermesh.Origin, n *contact) bool {
		_, held := known.Lookup(o)
		return !held && o != c.self && len(n.lives) == 0 && n.streams == 0 && !n.probing && !n.asking && now.Sub(n.metAt) >= metAge
	})
}

// Alive returns the other nodes that are alive, sorted.
func (c *Contacts) Alive() []clustermesh.Origin {
	return c.those(func(n *contact) bool { return n.state() == clustermesh.Alive })
}

// Members returns the other nodes that memberlist calls alive, sorted: those to keep streams to.
func (c *Contacts) Members() []clustermesh.Origin {
	return c.those(func(n *contact) bool { return len(n.lives) > 0 })
}

// Expected returns the other nodes that are alive or may be: members of which nothing else is known
// yet. They are sorted.
func (c *Contacts) Expected() []clustermesh.Origin {
	return c.those(func(n *contact) bool {
		s := n.state()
		return s == clustermesh.Alive || len(n.lives) > 0 && s == clustermesh.Held
	})
}

func (c *Contacts) those(are func(*contact) bool) []clustermesh.Origin {
	out := make([]clustermesh.Origin, 0, len(c.nodes))
	for o, n := range c.nodes {
		if o != c.self && are(n) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, clustermesh.Origin.Compare)
	return out
}

// hears reports whether any other node is alive.
func (c *Contacts) hears() bool {
	for o, n := range c.nodes {
		if o != c.self && n.state() == clustermesh.Alive {
			return true
		}
	}
	return false
}

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
	for o, n := range c.nodes {
		if addrs := n.duplicates(now); len(addrs) > 0 {
			out[o] = addrs
		}
	}
	return out
}

// All returns the contact with each node, in the life that wrote its record. Nodes that are Held
// are left out.
func (c *Contacts) All(known records) clustermesh.ByOrigin[clustermesh.Contact] {
	var out clustermesh.Draft[clustermesh.Contact]
	out.Set(c.self, clustermesh.Alive)
	for o, n := range c.nodes {
		if o == c.self {
			continue
		}
		if s := n.of(known.Get(o)); s != clustermesh.Held {
			out.Set(o, s)
		}
	}
	return out.Share()
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
// can say where a node is a member, and answer there for a machine that is gone. So if its cluster is
// pinned, a place that its record does not name counts only if the node proved there that it is that, and
// never proved it at one that the record names: a machine that passes packets on can be in between.
func (c *Contacts) ProbeAddrs(o clustermesh.Origin, rec clustermesh.Record) []netip.AddrPort {
	switch n := c.node(o); {
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
