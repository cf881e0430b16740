package sim

import (
	"time"

	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

// conn is one connection of a stream. It keeps the order of what is sent on it.
type conn struct {
	stream   *stream
	to       *Machine
	session  *node.Session
	fromLife int
	toLife   int
	began    time.Duration
	frames   []frame       // on their way
	last     time.Duration // when the last of them arrives
	heard    time.Duration // when the receiver had the last
	acked    time.Duration // when both ways were last open
	pumping  bool
	broken   bool // the sender knows that it ended
	closed   bool // the receiver knows it
}

func newConn(s *stream, to *Machine, session *node.Session) *conn {
	now := s.from.net.now
	c := &conn{stream: s, to: to, session: session, fromLife: s.from.life, toLife: to.life, began: now, last: now, heard: now, acked: now}
	to.open[c] = true
	c.watch()
	return c
}

// send puts a frame on its way.
func (c *conn) send(f frame) {
	m, w := c.stream.from, c.stream.from.net
	wire, packets := onWire(len(f.bytes))
	w.Sent.count(f.kind, wire)
	m.free = max(m.free, w.now) + time.Duration(float64(wire)*8/bandwidth*float64(time.Second))
	delay := w.delay(m, c.to)
	f.at = max(m.free+delay+w.late(packets, delay), c.last)
	c.last = f.at
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
		m.do(func(_ *node.Node, now time.Time) { c.session.Receive(nil, now) })
		return
	}
	wire, _ := onWire(len(f.bytes))
	m.Received += wire
	m.busy = max(m.busy, w.now) + costOf(f)
	w.Later(m.busy-w.now, func() {
		if c.closed || m.life != c.toLife {
			return
		}
		m.doNews(func(_ *node.Node, now time.Time) { c.session.Receive(f.message(), now) })
	})
}

// costOf is how long a message occupies its receiver, as measured by make bench and notes/replication.md §3.
func costOf(f frame) time.Duration {
	if f.kind == replica.KindSnapshot {
		return 20*time.Microsecond + time.Duration(len(f.bytes))*70*time.Nanosecond
	}
	return 12*time.Microsecond + time.Duration(len(f.bytes))*8*time.Nanosecond
}

// beats sends heartbeats until the connection ends.
func (c *conn) beats() {
	c.stream.from.after(heartbeat, func() {
		if !c.broken {
			c.send(frame{packet: beating})
			c.beats()
		}
	})
}

// watch ends the connection if nothing is acknowledged, or nothing comes.
func (c *conn) watch() {
	w := c.to.net
	w.Later(heartbeat, func() {
		if c.broken && c.closed {
			return
		}
		if w.talk(c.stream.from, c.to) {
			c.acked = w.now
			if c.to.life != c.toLife { // another life knows nothing of it
				c.broke()
			}
		}
		if !c.broken && w.now-c.acked > userTimeout {
			c.broke()
		}
		if !c.closed && w.now-c.heard > readTimeout {
			c.close()
		}
		c.watch()
	})
}

// end ends the connection at one side. The other one notices if what that sends passes.
func (c *conn) end(at *Machine) {
	w := c.to.net
	from := c.stream.from
	switch {
	case at == from:
		c.broken = true
		if w.passes(from, c.to) {
			w.Later(w.delay(from, c.to), c.close)
		}
	default:
		c.closed = true
		delete(c.to.open, c)
		if w.passes(c.to, from) {
			w.Later(w.delay(c.to, from), c.broke)
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
		delete(c.to.open, c)
		c.to.do(func(_ *node.Node, now time.Time) { c.session.Close(now) })
	}
}
