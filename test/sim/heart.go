package sim

import (
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
)

// hearts sends heartbeats on the machine's connections, all at the same time, and ends connections on which nothing
// is acknowledged or nothing comes.
func (m *Machine) hearts() {
	m.after(heartbeat, m.hearts)
	m.out = slices.DeleteFunc(m.out, func(c *conn) bool { return c.broken })
	m.in = slices.DeleteFunc(m.in, func(c *conn) bool { return c.closed })
	for _, c := range m.out {
		c.watchOut()
	}
	for _, c := range m.in {
		if m.net.now-c.heard > readTimeout {
			c.endAt(m)
		}
	}
	m.sendHearts()
}

// watchOut ends a connection on which nothing is acknowledged.
func (c *conn) watchOut() {
	w := c.to.net
	if w.talk(c.stream.from, c.to) {
		c.acked = w.now
		if c.closed || c.to.life != c.toLife { // the machine answers that it knows nothing of it
			c.endAt(c.stream.from)
		}
	}
	if w.now-c.acked > userTimeout {
		c.endAt(c.stream.from)
	}
}

// sendHearts sends a heartbeat on each connection on which nothing else was sent. Those to the
// machines of a cluster arrive together, so that they are one event, except those that are lost at
// first or wait behind messages.
func (m *Machine) sendHearts() {
	w := m.net
	groups := map[clustermesh.ClusterName][]*conn{}
	var clusters []clustermesh.ClusterName
	for _, c := range m.out {
		if c.broken || c.sent > 0 && w.now-c.sent < heartbeat {
			continue
		}
		late := w.late(1, w.base(m, c.to))
		if late > 0 || len(c.frames) > 0 {
			wire, _ := onWire(0)
			c.put(frame{packet: beating}, wire, late)
			continue
		}
		to := c.to.Self.Cluster
		if groups[to] == nil {
			clusters = append(clusters, to)
		}
		groups[to] = append(groups[to], c)
	}
	for _, to := range clusters {
		m.sendGroup(groups[to])
	}
}

// sendGroup sends heartbeats to machines of one cluster.
func (m *Machine) sendGroup(all []*conn) {
	w := m.net
	wire, _ := onWire(0)
	for range all {
		w.Sent.count(0, wire)
	}
	m.occupy(wire * len(all))
	arrives := m.free + w.delay(m, all[0].to)
	for _, c := range all {
		c.last = max(c.last, arrives)
	}
	w.Later(arrives-w.now, func() {
		for _, c := range all {
			c.arriveHeart()
		}
	})
}

// arriveHeart has the receiver handle a heartbeat, or sends it again.
func (c *conn) arriveHeart() {
	switch w := c.to.net; {
	case c.closed || c.to.life != c.toLife:
	case !w.passes(c.stream.from, c.to):
		c.frames = append(c.frames, frame{packet: beating, at: w.now})
		c.pump(retransmit)
	default:
		c.heard = w.now
		c.heartbeat()
	}
}

// heartbeat has the receiver handle a heartbeat.
func (c *conn) heartbeat() {
	c.to.do(func(_ *node.Node, now time.Time) { c.session.Receive(nil, now) })
}
