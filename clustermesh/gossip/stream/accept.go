package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"
)

// accept serves a stream that a peer opened, its request for a statement or its query, until it breaks or
// ctx ends.
func (s *Streams) accept(ctx context.Context, conn *tls.Conn) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	s.note(conn)
	defer s.forget(conn)
	// After note: the keys may have changed since the handshake.
	peer, err := s.identity.Load().peer(conn.ConnectionState())
	if err != nil {
		return
	}
	session, err := s.host.Accept(peer, hostOf(conn))
	if err != nil {
		return
	}
	defer session.Close()
	switch conn.ConnectionState().NegotiatedProtocol {
	case signerProtocol:
		if err := s.sign(ctx, conn, peer); err != nil && ctx.Err() == nil {
			s.log.Debug("request for a statement failed", "from", peer.Origin, "err", err)
		}
		return
	case queryProtocol:
		if err := s.answer(conn, peer); err != nil {
			s.log.Debug("query refused", "from", peer.Origin, "err", err)
		}
		return
	}
	if !session.Trusted() {
		from, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
		in, out := s.crowd.enter(conn, from.Addr(), session)
		if out != nil {
			hangUp(out.conn)
		}
		defer s.crowd.leave(in)
	}
	if conn.ConnectionState().NegotiatedProtocol == bothWays {
		err = s.takes(ctx, conn, peer, session)
	} else {
		err = s.read(conn, session)
	}
	if ctx.Err() == nil {
		s.log.Debug("record stream ended", "from", peer.Origin, "err", err)
	}
}

// hangUp closes the connection below TLS: closing TLS waits for the lock that a write to a peer
// that reads nothing holds.
func hangUp(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	conn.Close()
}

// keptFrame is the largest buffer, in bytes, that a stream keeps for its next message.
const keptFrame = 64 << 10

// read receives the messages of a peer that alone writes, until the stream ends, and returns why it
// did.
func (s *Streams) read(conn net.Conn, session Session) error {
	r := bufio.NewReaderSize(conn, 32<<10)
	return readAll(conn, session, func(buf []byte) ([]byte, error) { return ReadFrame(r, buf) })
}

// readAll receives a peer's messages until one cannot be read, and returns why.
func readAll(conn net.Conn, session Session, read func(buf []byte) ([]byte, error)) error {
	var buf []byte
	for {
		if err := conn.SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
			return err
		}
		frame, err := read(buf)
		if err != nil {
			return err
		}
		buf = frame
		if err := session.Receive(frame); err != nil {
			return err
		}
		if cap(buf) > keptFrame {
			buf = nil // large messages are rare, and peers are many
		}
	}
}

// hostOf returns the peer's address without the port, which means nothing to a person.
func hostOf(c net.Conn) string {
	if ap, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		return ap.Addr().Unmap().String()
	}
	return c.RemoteAddr().String()
}
