package gossip

import (
	"context"
	"net"

	"strait.io/strait/clustermesh/gossip/pool"
	"strait.io/strait/clustermesh/gossip/stream"
)

// secure implements pool.TLS with the identity of the record streams.
type secure struct{ streams *stream.Streams }

var _ pool.TLS = secure{}

// Accept implements pool.TLS.
func (s secure) Accept(ctx context.Context, raw net.Conn) (pool.Secured, error) {
	conn, members, err := s.streams.Handshake(ctx, raw)
	return pool.Secured{Conn: conn, Members: members}, err
}

// Dial implements pool.TLS.
func (s secure) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return s.streams.DialMembers(ctx, addr)
}
