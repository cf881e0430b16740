package stream

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"strait.io/strait/internal/l4"
)

// Bounds on the streams of peers that are not believed to be their nodes: of all of them, and of one source.
// A new machine is such a peer until its cluster states something about it, so a few must always find room.
const (
	maxDoubted          = 512
	maxDoubtedPerSource = 32
)

// crowd holds the streams of peers that are not believed. When there are too many, the oldest one of the source
// that has most of them goes. Peers that are believed are not counted, so others cannot crowd them out.
type crowd struct {
	mu   sync.Mutex
	here []*doubted // the oldest first
}

// doubted is one such stream.
type doubted struct {
	conn    net.Conn
	source  netip.Prefix
	session Session
}

// enter notes a stream, and returns the one that has to go for it, if any. The caller must call leave.
func (c *crowd) enter(conn net.Conn, from netip.Addr, session Session) (in, out *doubted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in = &doubted{conn, l4.Source(from), session}
	c.here = append(c.here, in)
	if len(c.here) <= maxDoubted && c.sizes()[in.source] <= maxDoubtedPerSource {
		return in, nil
	}
	// Some may have proven meanwhile which node they are.
	c.here = slices.DeleteFunc(c.here, func(d *doubted) bool { return d.session.Trusted() })
	i := c.worst(in.source)
	if i < 0 {
		return in, nil
	}
	out = c.here[i]
	c.here = slices.Delete(c.here, i, i+1)
	return in, out
}

// worst returns which stream has to go after one of a source came, or -1: the oldest of that source or, if there
// are too many of all, the oldest of those whose sources have most.
func (c *crowd) worst(source netip.Prefix) int {
	sizes := c.sizes()
	if sizes[source] > maxDoubtedPerSource {
		return slices.IndexFunc(c.here, func(d *doubted) bool { return d.source == source })
	}
	if len(c.here) <= maxDoubted {
		return -1
	}
	worst := 0
	for i, d := range c.here {
		if sizes[d.source] > sizes[c.here[worst].source] {
			worst = i
		}
	}
	return worst
}

func (c *crowd) sizes() map[netip.Prefix]int {
	out := map[netip.Prefix]int{}
	for _, d := range c.here {
		out[d.source]++
	}
	return out
}

func (c *crowd) leave(d *doubted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.here = slices.DeleteFunc(c.here, func(x *doubted) bool { return x == d })
}
