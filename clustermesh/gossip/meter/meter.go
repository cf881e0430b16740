// Package meter counts the bytes that gossip sends and receives, on the wire: with TLS, and without
// the headers of IP, UDP and TCP.
//
// Inputs are datagrams' sizes and connections; outputs are the counts. It must not know what the
// bytes mean.
package meter

import (
	"net"
	"sync/atomic"
)

// Meter counts. A nil Meter counts nothing.
type Meter struct{ udp, tcp pair }

// pair is what was sent, and what was received.
type pair struct{ sent, received atomic.Uint64 }

// Count is how many bytes of one kind there were.
type Count struct {
	// Transport is "udp" or "tcp", and Direction "sent" or "received".
	Transport, Direction string
	Bytes                uint64
}

// Counts returns all kinds, also those without bytes.
func (m *Meter) Counts() []Count {
	return []Count{
		{"udp", "sent", m.udp.sent.Load()}, {"udp", "received", m.udp.received.Load()},
		{"tcp", "sent", m.tcp.sent.Load()}, {"tcp", "received", m.tcp.received.Load()},
	}
}

// Sent counts a datagram of that many bytes.
func (m *Meter) Sent(bytes int) {
	if m != nil {
		m.udp.sent.Add(uint64(max(bytes, 0)))
	}
}

// Received counts likewise.
func (m *Meter) Received(bytes int) {
	if m != nil {
		m.udp.received.Add(uint64(max(bytes, 0)))
	}
}

// Conn is a connection whose bytes are counted.
func (m *Meter) Conn(conn net.Conn) net.Conn {
	if m == nil {
		return conn
	}
	return counted{conn, &m.tcp}
}

type counted struct {
	net.Conn
	bytes *pair
}

// Read implements net.Conn.
func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.received.Add(uint64(max(n, 0)))
	return n, err
}

// Write implements net.Conn.
func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.sent.Add(uint64(max(n, 0)))
	return n, err
}
