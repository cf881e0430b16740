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
	conn, p, _, err := s.dialFor(ctx, addr.String(), streamProtocol)
	if conn != nil {
		conn.Close()
	}
	return p, err
}

// dialFor opens a connection for the first of the protocols that the daemon there has, and returns
// which daemon answers, and what takes its messages.
func (s *Streams) dialFor(ctx context.Context, addr string, protocols ...string) (*tls.Conn, Peer, Session, error) {
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
		return nil, Peer{}, nil, err
	}
	id := s.identity.Load()
	conn := tls.Client(s.services.Meter.Conn(raw), id.config(protocols...))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, Peer{}, nil, handshakeError(err)
	}
	p, err := id.peer(conn.ConnectionState())
	var session Session
	if err == nil {
		session, p.Trusted, err = s.host.Admit(p, addr)
	}
	if err != nil {
		conn.Close()
		return nil, p, nil, err
	}
	return conn, p, session, nil
}
