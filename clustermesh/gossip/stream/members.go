package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
)

// membersProtocol is the ALPN protocol of memberlist's connections.
const membersProtocol = "strait-members/1"

// Handshake runs the handshake of a connection that a peer opened. It returns once the peer has proven
// that it has the gossip key. members is set if the connection is memberlist's; otherwise it is a
// stream for Run. old is set if the peer's daemon does not use TLS for memberlist.
func (s *Streams) Handshake(ctx context.Context, raw net.Conn) (conn net.Conn, members, old bool, err error) {
	protocols := []string{streamProtocol, membersProtocol}
	if s.signer != nil && s.signer.Signs() {
		protocols = append(protocols, signerProtocol)
	}
	config := s.identity.Load().config(protocols...)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		// What was offered is part of what the handshake proves.
		old = slices.Contains(hello.SupportedProtos, streamProtocol) && !slices.Contains(hello.SupportedProtos, membersProtocol)
		return nil, nil
	}
	c := tls.Server(raw, config)
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	if err := handshakeError(c.HandshakeContext(ctx)); err != nil {
		s.log.Debug("connection refused", "from", raw.RemoteAddr(), "error", err)
		if errors.Is(err, ErrWrongKey) && ctx.Err() == nil {
			s.host.WrongKey(hostOf(raw))
		}
		return nil, false, false, err
	}
	// Whether the peer may be a member is up to memberlist's delegate, which knows its address.
	members = c.ConnectionState().NegotiatedProtocol == membersProtocol
	return c, members, old, nil
}

// DialMembers opens a connection for memberlist. A daemon of the version before refuses the
// protocol. If it proves on a record stream that it has the gossip key, the connection is opened
// without TLS, as that version does; memberlist itself encrypts what it sends. Otherwise an address
// that a stranger took over could ask for such a connection.
func (s *Streams) DialMembers(ctx context.Context, addr string) (conn net.Conn, plain bool, err error) {
	conn, _, err = s.dialFor(ctx, addr, membersProtocol)
	if err == nil || !refusesProtocol(err) {
		return conn, false, err
	}
	asked, _, err := s.dial(ctx, addr)
	if err != nil {
		return nil, false, err
	}
	asked.Close()
	var d net.Dialer
	conn, err = d.DialContext(ctx, "tcp", addr)
	return conn, true, err
}

func refusesProtocol(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "no application protocol")
}
