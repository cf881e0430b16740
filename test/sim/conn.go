package sim

import (
	"time"

	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

// conn is one way of a connection, on which the machine of a stream sends. It keeps the order of
// what is sent on it.
type conn struct {
	stream   *stream
	back     *conn // the other way; nil while the other side does not send
	to       *Machine
	session  *node.Session // the receiver's
	dialled  bool          // by the sender
	answers  *node.Session // of a dialled one, the sender's: for what the receiver sends
	fromLife int
	toLife   int
	began    time.Duration
	frames   []frame       // on their way
	last     time.Duration // when the last of them arrives
	heard    time.Duration // when the receiver had the last
	acked    time.Duration // when both ways were last open
	sent     time.Duration // when the last of them was put on its way
	wrote    time.Duration // when frames last left, and when the next leave, if some wait
	next     time.Duration
	pumping  bool
	broken   bool // the sender knows that it ended
	closed   bool // the receiver knows it
}

func newConn(s *stream, to *Machine, session *node.Session) *conn {
	now := s.from.net.now
	c := &conn{stream: s, to: to, session: session, fromLife: s.from.life, toLife: to.life, began: now, last: now, heard: now, acked: now}
	s.from.out, to.in = append(s.from.out, c), append(to.in, c)
	return c
}

// send puts a frame on its way, with others that are sent soon after one another.
func (c *conn) send(f frame) {
	m, w := c.stream.from, c.stream.from.net
	wire, packets := onWire(len(f.bytes))
	late := w.late(packets, w.base(m, c.to))
	switch {
	case w.now-c.wrote >= batch:
		c.wrote = w.now
		c.put(f, wire, late)
		return
	case c.next <= w.now:
		c.next = c.wrote + batch
		w.Later(c.next-w.now, func() { c.wrote = w.now })
	default:
		wire = len(f.bytes) + 2 // the rest goes with the first of them
	}
	c.put(f, wire, c.next-w.now+late)
}

// put puts a frame on its way, so that it arrives late.
func (c *conn) put(f frame, wire int, late time.Duration) {
	m, w := c.stream.from, c.stream.from.net
	w.Sent.count(f.kind, wire)
	m.Sent += wire
	m.occupy(wire)
	f.at = max(m.free+w.delay(m, c.to)+late, c.last)
	c.last, c.sent = f.at, w.now
	c.frames = append(c.frames, f)
	c.pump(f.at - w.now)
}

// pump delivers the first frame after a time, and then the others.
func (c *conn) pump(d time.Duration) {
	if c.pumping {
		return
	}
	c.pumping = true
	w := c.to.net
	w.Later(d, func() {
		c.pumping = false
		switch {
		case c.closed || c.to.life != c.toLife || len(c.frames) == 0:
			return
		case !w.passes(c.stream.from, c.to):
			c.pump(retransmit)
			return
		}
		f := c.frames[0]
		c.frames = c.frames[1:]
		c.arrive(f)
		if len(c.frames) > 0 {
			c.pump(max(0, c.frames[0].at-w.now))
		}
	})
}

// arrive has the receiver handle a frame once it has handled what came before.
func (c *conn) arrive(f frame) {
	m, w := c.to, c.to.net
	c.heard = w.now
	if f.kind == 0 {
		c.heartbeat()
		return
	}
	wire, _ := onWire(len(f.bytes))
	m.Received += wire
	m.busy = max(m.busy, w.now) + m.slow*costOf(f)
	w.Later(m.busy-w.now, func() {
		if c.closed || m.life != c.toLife {
			return
		}
		m.doNews(func(_ *node.Node, now time.Time) { c.session.Receive(w.decode(f.packet), now) })
	})
}

// costOf is how long a message occupies its receiver, as measured by make bench and notes/replication.md §3.
func costOf(f frame) time.Duration {
	switch f.kind {
	case replica.KindDelta: // the record that it makes is verified and decoded
		return 120 * time.Microsecond
	case replica.KindDeflated: // to about a third
		return 20*time.Microsecond + time.Duration(len(f.bytes))*210*time.Nanosecond
	case replica.KindSnapshot:
		return 20*time.Microsecond + time.Duration(len(f.bytes))*70*time.Nanosecond
	}
	return 12*time.Microsecond + time.Duration(len(f.bytes))*8*time.Nanosecond
}

// end ends the connection at one side, both ways. The other one notices if what that sends passes.
func (c *conn) end(at *Machine) {
	w, other := c.to.net, c.to
	if at == c.to {
		other = c.stream.from
	}
	c.endAt(at)
	if w.passes(at, other) {
		w.Later(w.delay(at, other), func() { c.endAt(other) })
	}
}

// endAt has one side notice that the connection ended.
func (c *conn) endAt(m *Machine) {
	for _, way := range []*conn{c, c.back} {
		switch {
		case way == nil:
		case way.stream.from == m:
			way.broke()
		default:
			way.close()
		}
	}
}

// broke is called when the sender notices that the connection ended.
func (c *conn) broke() {
	if c.broken {
		return
	}
	c.broken = true
	if c.stream.from.life == c.fromLife {
		c.stream.lost(c)
	}
}

// close is called when the receiver notices that the connection ended.
func (c *conn) close() {
	if c.closed {
		return
	}
	c.closed = true
	if c.to.life == c.toLife {
		c.to.do(func(_ *node.Node, now time.Time) { c.session.Close(now) })
	}
}
