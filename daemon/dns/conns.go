package dns

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/internal/l4"
)

// Bounds on TCP connections of clients of one listener: of all of them, and of one source. A client needs
// one for an answer that does not fit into a datagram.
const (
	maxConns          = 512
	maxConnsPerSource = 64
	// idleTimeout is how long a client may take for its next query.
	idleTimeout = 5 * time.Second
)

// limited is a listener with bounded connections. When there are too many, the oldest of the source that
// has too many has to go, or the oldest of all.
type limited struct {
	net.Listener
	mu   sync.Mutex
	open []*limitedConn // the oldest first
}

// limitedConn is a connection that a limited listener accepted.
type limitedConn struct {
	net.Conn
	source netip.Prefix
	of     *limited
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from, _ := netip.ParseAddrPort(raw.RemoteAddr().String())
	conn := &limitedConn{Conn: raw, source: l4.Source(from.Addr()), of: l}
	if out := l.add(conn); out != nil {
		out.Close()
	}
	return conn, nil
}

// add notes a connection, and returns the one that has to go for it.
func (l *limited) add(conn *limitedConn) (out *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, conn)
	n := 0
	for _, c := range l.open {
		if c.source == conn.source {
			n++
		}
	}
	switch {
	case n > maxConnsPerSource:
		return l.open[slices.IndexFunc(l.open, func(c *limitedConn) bool { return c.source == conn.source })]
	case len(l.open) > maxConns:
		return l.open[0]
	}
	return nil
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(o *limitedConn) bool { return o == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}
