package gossip

import (
	"context"
	"net"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/stream"
)

// answerer implements stream.Answerer.
type answerer struct{ *Gossip }

var _ stream.Answerer = answerer{}

// answerer returns what answers the queries of other nodes; nil if this daemon answers none.
func (g *Gossip) answerer() stream.Answerer {
	if g.cfg.Answer == nil {
		return nil
	}
	return answerer{g}
}

// Trusts implements stream.Answerer.
func (a answerer) Trusts(p stream.Peer) error {
	shown := a.verify(p)
	return ask(a.Gossip, func(n *node.Node, _ time.Time) error { return n.Query(peerOf(p), shown) })
}

// Answer implements stream.Answerer.
func (a answerer) Answer(conn net.Conn) { a.cfg.Answer(conn) }

// Query opens a connection for a query to another node of this cluster, whose daemon has it answered by its
// Config.Answer. Both ends must be nodes of the cluster, and prove that where it is pinned. The caller must
// close the connection.
func (g *Gossip) Query(ctx context.Context, to clustermesh.NodeName) (net.Conn, error) {
	return g.streams.Query(ctx, clustermesh.Origin{Cluster: g.cfg.Self.Cluster, Node: to})
}

// Why a node was not queried: its daemon is older than queries, or has another gossip key.
var (
	ErrNoAnswerer = stream.ErrNoAnswerer
	ErrWrongKey   = stream.ErrWrongKey
)
