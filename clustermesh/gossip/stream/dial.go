package stream

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ask returns which daemon answers at an address. The error is ErrWrongKey if the keys differ. If
// Host.Admit refuses the peer, Ask returns that error along with the peer.
func (s *Streams) Ask(ctx context.Context, addr netip.AddrPort) (Peer, error) {
	conn, p, err := s.dial(ctx, addr.String())
	if conn != nil {
		conn.Close()
	}
	return p, err
}

// dial opens a record stream and returns which daemon answers.
func (s *Streams) dial(ctx context.Context, addr string) (net.Conn, Peer, error) {
	return s.dialFor(ctx, addr, streamProtocol)
}

// dialFor opens a connection for the first of the protocols that the daemon there has.
func (s *Streams) dialFor(ctx context.Context, addr string, protocols ...string) (net.Conn, Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if ctl := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
		}); ctl != nil {
			return ctl
		}
		return err
	}}
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, Peer{}, err
	}
	id := s.identity.Load()
	conn := tls.Client(s.services.Meter.Conn(raw), id.config(protocols...))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, Peer{}, handshakeError(err)
	}
	p, err := id.peer(conn.ConnectionState())
	if err == nil {
		p.Trusted, err = s.host.Admit(p, addr)
	}
	if err != nil {
		conn.Close()
		return nil, p, err
	}
	return conn, p, nil
}
