package pool

import (
	"errors"
	"net"
	"net/netip"
)

// errTooMuch ends a connection whose peer sends more than it may.
var errTooMuch = errors.New("the peer sent more than it may before it proved that it has the gossip key")

// bounded is a connection from which only so many bytes can be read.
type bounded struct {
	net.Conn
	left int // negative: no bound
}

// Read implements net.Conn.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.Conn.Read(p)
	}
	if b.left == 0 {
		return 0, errTooMuch
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// peeked is a stream whose first byte was read already.
type peeked struct {
	net.Conn
	first []byte
}

// Read returns the first byte, then the rest.
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 && len(b) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// hostOf returns the address of a connection's peer.
func hostOf(a net.Addr) netip.Addr {
	ap, _ := netip.ParseAddrPort(a.String())
	return ap.Addr().Unmap()
}
