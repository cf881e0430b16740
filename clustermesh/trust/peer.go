package trust

import (
	"fmt"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
)

// Peer is the other end of a connection: the node that it claims to be, and the key that it has proven
// to have.
type Peer struct {
	Origin clustermesh.Origin
	Key    authority.PublicKey
	// Stated is true if it shows a statement that proves Key to be its node's; see authority.Pins.Proves.
	Stated bool
}

// PeerTrust returns how far a peer counts as the node that it claims to be. It proves that by what it shows,
// or by the key that is stated with the node's record. The answer stays the same while Basis does.
func (s *verifier) PeerTrust(p Peer) authority.PeerTrust {
	var known *clustermesh.Node
	if r := s.records.Peek(p.Origin); r != nil {
		known = r.Content.Node
	}
	return s.pins.PeerTrust(p.Origin, s.Proves(p), known)
}

// Basis identifies all that PeerTrust of a cluster's nodes depends on: pins, records, and what was
// verified of them. To judge each peer again at each of its heartbeats would take a node with many
// peers much of its time.
type Basis struct{ pins, records, verified uint64 }

// Basis returns the Basis of now.
func (s *verifier) Basis(c clustermesh.ClusterName) Basis {
	return Basis{s.generation, s.records.Changed(c), s.verified.changed[c]}
}

// Proves reports whether a peer has its node's key, and the key was not revoked.
func (s *verifier) Proves(p Peer) bool {
	known, recorded := s.verified.of[p.Origin]
	proven := p.Stated || recorded && known.Key == p.Key || p.Origin == s.self && p.Key == s.key
	return proven && !s.Revokes(p.Origin.Cluster, p.Key)
}

// RefusePeer counts a peer that claims to be a node and does not prove it.
func (s *verifier) RefusePeer() { s.impostors++ }

// RefusedPeers returns how many peers were refused in this life of the daemon.
func (s *verifier) RefusedPeers() uint64 { return s.impostors }

// ImpostorProblem returns the Problem of a peer that claims to be a node and does not prove it.
func ImpostorProblem(o clustermesh.Origin, addr string) clustermesh.Problem {
	return problem.Cluster(string(o.Cluster)).Problem(clustermesh.Problem{
		Code:    problem.NodeUnproven,
		Message: fmt.Sprintf("a daemon claims to be one of its nodes and does not prove it, so it does not count as heard (for example %s at %s)", o, addr),
		Try:     "nothing to do if that node was just downgraded or got a new node.key: this ends when its record arrives; otherwise find that machine: it has the gossip key and pretends to be the node",
		Warning: true,
	})
}
