package sim

import (
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/replica"
)

// Timing of streams, as in package stream.
const (
	dialTimeout  = 2 * time.Second
	heartbeat    = 500 * time.Millisecond
	readTimeout  = 10 * time.Second
	userTimeout  = 4 * time.Second
	doubtedFor   = 5 * time.Second
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
	yield        = 2 * time.Second
	batch        = 10 * time.Millisecond
)

// stream is a machine's stream to a neighbour. Messages wait while there is no connection.
type stream struct {
	from    *Machine
	to      clustermesh.Origin
	waiting []frame
	conn    *conn
	backoff time.Duration
	began   time.Duration // of the last connection
	closed  bool
}

// packet is a message and its encoding, which several frames can carry.
type packet struct {
	message replica.Message
	bytes   []byte // empty in a heartbeat
	kind    replica.Kind
}

// maxDecoded bounds the messages that are remembered.
const maxDecoded = 1 << 12

// decode returns what a receiver decodes. That differs from what was sent only if that has records. The same bytes
// are decoded once for all, because a Message is never changed.
func (w *Network) decode(p *packet) replica.Message {
	if p.kind != replica.KindSnapshot && p.kind != replica.KindDeflated {
		return p.message
	}
	id := maphash.Bytes(hashed, p.bytes)
	m, known := w.decoded[id]
	if known {
		return m
	}
	m, err := replica.Decode(p.bytes)
	if err != nil {
		panic(err)
	}
	if len(w.decoded) >= maxDecoded {
		clear(w.decoded)
	}
	w.decoded[id] = m
	return m
}

// beating is the packet of heartbeats.
var beating = &packet{}

type frame struct {
	*packet
	at time.Duration // when it arrives
}

// follow keeps streams to these neighbours.
func (m *Machine) follow(neighbours map[clustermesh.Origin]bool) {
	for _, o := range slices.SortedFunc(maps.Keys(neighbours), clustermesh.Origin.Compare) {
		switch s := m.streams[o]; {
		case neighbours[o] && s == nil:
			s = &stream{from: m, to: o, backoff: firstBackoff}
			m.streams[o] = s
			if c := m.cameFrom(o); c != nil {
				s.takes(c)
			} else {
				m.after(s.patience(), s.dialSoon)
			}
		case !neighbours[o] && s != nil:
			s.closed = true
			delete(m.streams, o)
			if s.conn != nil {
				s.conn.end(m)
			}
		}
	}
}

// neighbours are those to which there is a stream, in order.
func (m *Machine) neighbours() []clustermesh.Origin {
	out := make([]clustermesh.Origin, 0, len(m.streams))
	for o := range m.streams {
		out = append(out, o)
	}
	slices.SortFunc(out, clustermesh.Origin.Compare)
	return out
}

// conns are the connections of the machine's streams, and those of others to it.
func (m *Machine) conns() (out []*conn) {
	for _, o := range m.neighbours() {
		if c := m.streams[o].conn; c != nil {
			out = append(out, c)
		}
	}
	for _, c := range m.in {
		if !c.closed {
			out = append(out, c)
		}
	}
	return out
}

// patience is how long the machine waits for the other one to dial.
func (s *stream) patience() time.Duration {
	if s.from.Self.Compare(s.to) < 0 {
		return 0
	}
	return yield
}

// cameFrom is a connection that another machine has opened, and on which this one does not send
// yet.
func (m *Machine) cameFrom(o clustermesh.Origin) *conn {
	for _, c := range slices.Backward(m.in) {
		if c.stream.from.Self == o && c.dialled && !c.closed && !c.broken && c.back == nil {
			return c
		}
	}
	return nil
}

// takes has the machine send on a connection that the other one has opened.
func (s *stream) takes(c *conn) {
	m := s.from
	b := newConn(s, c.stream.from, c.answers)
	b.back, c.back = c, b
	s.begin(b)
	if c.session.Trusted() {
		s.locate()
		return
	}
	m.after(doubtedFor, func() {
		if s.conn == b && !c.session.Trusted() {
			s.dial()
		}
	})
}

// locate dials a machine that has dialled this one, to know where it is.
func (s *stream) locate() {
	m := s.from
	at := m.node.Addr(s.to, m.clock())
	m.connect(at, func(a answer) {
		if a.err != nil || a.peer.Origin != s.to || !a.believed {
			m.do(func(n *node.Node, now time.Time) { n.Missed(s.to, at, now) })
		}
	})
}

// dialSoon dials, unless there is a connection by then.
func (s *stream) dialSoon() {
	if s.conn == nil {
		s.dial()
	}
}

// dial opens the stream, and tries again until it is open.
func (s *stream) dial() {
	if s.closed {
		return
	}
	m := s.from
	at := m.node.Addr(s.to, m.clock())
	m.connect(at, func(a answer) {
		if s.closed {
			return
		}
		if a.err == nil && a.peer.Origin != s.to {
			a.err = errOther
		}
		if a.err != nil || !a.believed {
			m.do(func(n *node.Node, now time.Time) { n.Missed(s.to, at, now) })
		}
		if a.err != nil {
			if s.conn == nil {
				s.retry()
			}
			return
		}
		s.opened(a)
	})
}

func (s *stream) retry() {
	if s.closed {
		return
	}
	if s.began > 0 && s.from.net.now-s.began > lastBackoff {
		s.backoff = firstBackoff
	}
	s.began = 0
	s.from.after(s.from.pause(s.backoff)+s.patience(), s.dialSoon)
	s.backoff = min(2*s.backoff, lastBackoff)
}

// opened begins with a connection that this machine has opened. If the other one has opened one at
// the same time, that which the lower of the two has dialled stays.
func (s *stream) opened(a answer) {
	m := s.from
	if old := s.conn; old != nil {
		if old.back != nil && old.back.dialled && s.to.Compare(m.Self) < 0 && m.net.now-old.began <= dialTimeout && old.back.session.Trusted() {
			return
		}
		s.conn = nil
		old.end(m)
	}
	c := newConn(s, a.machine, a.session)
	c.dialled, c.answers = true, a.own
	s.begin(c)
	if their := a.machine.streams[m.Self]; their != nil && !their.closed {
		if old := their.conn; old != nil {
			their.conn = nil
			old.end(a.machine)
		}
		their.takes(c)
	}
	if !a.believed {
		m.after(doubtedFor, func() {
			if s.conn == c {
				s.conn = nil
				c.end(m)
				s.dial()
			}
		})
	}
}

// begin sends what waits, and heartbeats.
func (s *stream) begin(c *conn) {
	m := s.from
	s.began = m.net.now
	s.conn = c
	m.do(func(n *node.Node, now time.Time) { n.Connected(s.to, true, now) })
	waiting := s.waiting
	s.waiting = nil
	for _, f := range waiting {
		c.send(f)
	}
}

// send gives messages to the streams. Messages to several peers are encoded once.
func (m *Machine) send(all []replica.Envelope) {
	var last replica.Message
	var f frame
	for _, e := range all {
		if e.Message != last {
			last = e.Message
			bytes, err := replica.Encode(e.Message)
			if err != nil {
				panic(err)
			}
			f = frame{packet: &packet{e.Message, bytes, e.Message.Kind()}}
		}
		if s := m.streams[e.To]; s != nil && (!m.Withholds || f.kind == replica.KindHello || f.kind == replica.KindLinks) {
			s.send(f)
		}
	}
}

func (s *stream) send(f frame) {
	if s.conn == nil {
		s.waiting = append(s.waiting, f)
		return
	}
	s.conn.send(f)
}

// lost is called when the connection broke.
func (s *stream) lost(c *conn) {
	if s.conn == c {
		s.conn = nil
		s.retry()
	}
}
