package gossip

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
)

// Timing of the contact with other nodes.
const (
	// heartbeat is how often a stream says something; stalled is how long one may say nothing before the
	// machine is probed.
	heartbeat = 500 * time.Millisecond
	stalled   = 1300 * time.Millisecond
	// silentRounds is how many probes in a row must be silent; quietRounds how many of a machine that
	// answered after its daemon was gone. Nobody waits for such a machine as for a dead one, and what is
	// said of it in error stands longer.
	silentRounds = 2
	quietRounds  = 4
	// holdDown is how long a machine that was silent must answer before it counts, unless its daemon is
	// heard. A machine that boots answers long before its pods do.
	holdDown = 20 * time.Second
	// reprobe is the pause between probes of a node that is lost, before jitter.
	reprobe = time.Second
	// startGrace is how long nodes known from disk have to be heard before they are probed, and lower
	// names of the cluster before this node leads.
	startGrace = 2 * time.Second
	// duplicateAge is how long two lives of one node may overlap: a restart elsewhere overlaps until
	// memberlist has noticed that the first life is gone.
	duplicateAge = 8 * time.Second
)

// contacts is what this node observes of others. Pure: times are arguments.
//
// memberlist alone says who is alive. What a node is that is not alive, its machine says: whether it
// answers a TCP connect. Probing begins before memberlist has decided, as soon as the node's stream
// falls silent, so that both verdicts are there at about the same time.
type contacts struct {
	self  clustermesh.Origin
	nodes map[clustermesh.Origin]*contact
}

type contact struct {
	lives    map[uint64]life // live members, by boot
	addr     netip.AddrPort  // where the node was last a member
	streams  int             // streams from it
	streamed bool            // had a stream since it was last found alive
	framed   time.Time       // last word on a stream
	heard    time.Time       // last sign of life of its daemon
	answered bool            // the last probe said so
	since    time.Time       // it has answered without a break since then
	rounds   int             // silent probes in a row
	probing  bool
	due      time.Time // not probed again before
}

type life struct {
	addr  netip.AddrPort
	since time.Time
}

func newContacts(self clustermesh.Origin) *contacts {
	return &contacts{self: self, nodes: map[clustermesh.Origin]*contact{}}
}

// restore makes nodes silent that were claimed silent before the daemon was restarted: to lift the claim
// takes a sign of life, not a restart of the witness.
func (c *contacts) restore(claims map[clustermesh.Origin]uint64) {
	for o := range claims {
		c.node(o).rounds = silentRounds
	}
}

func (c *contacts) node(o clustermesh.Origin) *contact {
	n := c.nodes[o]
	if n == nil {
		n = &contact{lives: map[uint64]life{}}
		c.nodes[o] = n
	}
	return n
}

func (n *contact) state() clustermesh.Contact {
	limit := silentRounds
	if !n.since.IsZero() {
		limit = quietRounds
	}
	switch {
	case len(n.lives) > 0:
		return clustermesh.Alive
	case n.rounds >= limit:
		return clustermesh.Silent
	case n.answered:
		return clustermesh.Quiet
	}
	return clustermesh.Held
}

// of returns the contact with the life that wrote a record of the given epoch. A daemon that is heard but
// has not published in its new life says nothing for what an earlier life wrote: of that only the machine
// is there.
func (n *contact) of(epoch uint64) clustermesh.Contact {
	if n.state() != clustermesh.Alive {
		return n.state()
	}
	for boot := range n.lives {
		if boot <= epoch {
			return clustermesh.Alive
		}
	}
	return clustermesh.Quiet
}

// back reports whether a machine that was silent has answered for long enough.
func (n *contact) back(now time.Time) bool {
	return n.answered && now.Sub(n.since) >= holdDown
}

// join notes a live member.
func (c *contacts) join(m member, addr netip.AddrPort, now time.Time) {
	n := c.node(m.origin)
	n.lives[m.boot] = life{addr, now}
	n.addr, n.heard = addr, now
	n.revive(now)
	n.streamed = n.streams > 0
}

// leave notes that a member is gone. The node is gone when its last life is.
func (c *contacts) leave(m member, now time.Time) {
	n := c.node(m.origin)
	delete(n.lives, m.boot)
	if len(n.lives) == 0 && n.rounds == 0 && !n.answered {
		n.due = now
	}
}

// revive forgets what probes said, on a sign of life.
func (n *contact) revive(now time.Time) {
	n.framed, n.answered, n.since, n.rounds = now, false, time.Time{}, 0
}

// frame notes a word on a stream from the node.
func (c *contacts) frame(o clustermesh.Origin, now time.Time) {
	n := c.node(o)
	n.heard = now
	n.revive(now)
}

// stream notes a stream from the node that opened (+1) or closed (-1).
func (c *contacts) stream(o clustermesh.Origin, delta int, now time.Time) {
	n := c.node(o)
	n.streams += delta
	if delta > 0 {
		n.streamed = true
		c.frame(o, now)
	} else if n.streams == 0 {
		n.due = now
	}
}

// suspect reports whether a live member's stream has fallen silent.
func (n *contact) suspect(now time.Time) bool {
	return n.streamed && (n.streams == 0 || now.Sub(n.framed) > stalled)
}

// due returns the nodes to probe now, of those known, and marks them as being probed: those of our own
// cluster first, since it decides about them.
func (c *contacts) due(known map[clustermesh.Origin]clustermesh.Record, now time.Time) []clustermesh.Origin {
	var near, far []clustermesh.Origin
	for o := range known {
		if o.Node == "" || o == c.self {
			continue
		}
		n := c.node(o)
		if n.probing || now.Before(n.due) || n.state() == clustermesh.Alive && !n.suspect(now) {
			continue
		}
		n.probing = true
		if o.Cluster == c.self.Cluster {
			near = append(near, o)
		} else {
			far = append(far, o)
		}
	}
	return append(near, far...)
}

// probed notes what a probe that began at a time found.
func (c *contacts) probed(o clustermesh.Origin, v verdict, began, now time.Time, rng *rand.Rand) {
	n := c.node(o)
	n.probing = false
	n.due = began.Add(jitter(reprobe, rng))
	switch {
	case n.heard.After(began):
		// Heard meanwhile: the probe is old news.
	case v == answered:
		if !n.answered {
			n.since = now
		}
		n.answered, n.rounds = true, 0
	case v == silent:
		n.answered = false
		n.rounds++
		if n.state() != clustermesh.Silent {
			n.due = now
		} else {
			n.since = time.Time{}
		}
	}
}

// renew forgets the silence of a node whose record shows a later life than the one that was claimed.
func (c *contacts) renew(o clustermesh.Origin, now time.Time) {
	n := c.node(o)
	n.rounds, n.due = 0, now
}

// forget forgets nodes of which no record is held, but those whose daemons are there.
func (c *contacts) forget(known map[clustermesh.Origin]clustermesh.Record) {
	maps.DeleteFunc(c.nodes, func(o clustermesh.Origin, n *contact) bool {
		_, held := known[o]
		return !held && o != c.self && len(n.lives) == 0 && n.streams == 0 && !n.probing
	})
}

// alive returns the other nodes that are live members.
func (c *contacts) alive() []clustermesh.Origin {
	out := make([]clustermesh.Origin, 0, len(c.nodes))
	for _, o := range sortedOrigins(c.nodes) {
		if o != c.self && len(c.nodes[o].lives) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// memberAddr returns where the youngest life of a node listens.
func (c *contacts) memberAddr(o clustermesh.Origin) (addr netip.AddrPort) {
	n := c.node(o)
	addr = n.addr
	var youngest uint64
	for boot, l := range n.lives {
		if boot >= youngest {
			youngest, addr = boot, l.addr
		}
	}
	return addr
}

// duplicates returns the nodes of which two lives have gone on at two addresses for too long.
func (c *contacts) duplicates(now time.Time) map[clustermesh.Origin][]netip.AddrPort {
	out := map[clustermesh.Origin][]netip.AddrPort{}
	for o, n := range c.nodes {
		seen := map[netip.AddrPort]bool{}
		for _, l := range n.lives {
			if now.Sub(l.since) > duplicateAge && !seen[l.addr] {
				seen[l.addr] = true
				out[o] = append(out[o], l.addr)
			}
		}
		if len(out[o]) < 2 {
			delete(out, o)
		}
	}
	return out
}

func (c *contacts) all(records map[clustermesh.Origin]clustermesh.Record) map[clustermesh.Origin]clustermesh.Contact {
	out := map[clustermesh.Origin]clustermesh.Contact{c.self: clustermesh.Alive}
	for o, n := range c.nodes {
		if o == c.self {
			continue
		}
		if s := n.of(records[o].Stamp.Epoch); s != clustermesh.Held {
			out[o] = s
		}
	}
	return out
}

func (c *contacts) heard() map[clustermesh.Origin]time.Time {
	out := map[clustermesh.Origin]time.Time{}
	for o, n := range c.nodes {
		if o != c.self && !n.heard.IsZero() {
			out[o] = n.heard
		}
	}
	return out
}

// jitter spreads a pause over ±50 %, so that nodes do not act in step.
func jitter(d time.Duration, rng *rand.Rand) time.Duration {
	return d/2 + time.Duration(rng.Int64N(int64(d)))
}
