package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
)

// membersProtocol is the ALPN protocol of memberlist's connections.
const membersProtocol = "strait-members/1"

// Handshake runs the handshake of a connection that a peer opened. It returns once the peer has proven
// that it has the gossip key. members is set if the connection is memberlist's; otherwise it is a
// stream for Run.
func (s *Streams) Handshake(ctx context.Context, raw net.Conn) (conn net.Conn, members bool, err error) {
	protocols := append(s.records(), membersProtocol)
	if s.services.Signer != nil && s.services.Signer.Signs() {
		protocols = append(protocols, signerProtocol)
	}
	if s.services.Answerer != nil {
		protocols = append(protocols, queryProtocol)
	}
	c := tls.Server(raw, s.identity.Load().config(protocols...))
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	if err := handshakeError(c.HandshakeContext(ctx)); err != nil {
		s.log.Debug("connection refused", "from", raw.RemoteAddr(), "err", err)
		if errors.Is(err, ErrWrongKey) && ctx.Err() == nil {
			s.host.WrongKey(hostOf(raw))
		}
		return nil, false, err
	}
	// Whether the peer may be a member is up to memberlist's delegate, which knows its address.
	return c, c.ConnectionState().NegotiatedProtocol == membersProtocol, nil
}

// DialMembers opens a connection for memberlist.
func (s *Streams) DialMembers(ctx context.Context, addr string) (net.Conn, error) {
	conn, _, _, err := s.dialFor(ctx, addr, membersProtocol)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func refusesProtocol(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "no application protocol")
}
