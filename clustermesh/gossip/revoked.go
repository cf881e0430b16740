package gossip

import (
	"errors"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
)

// errRevoked means that the key with which a node signs was revoked.
var errRevoked = errors.New("the key was revoked")

// revoked returns the fingerprints of a cluster's keys that count no more: by its pin here, and by its
// own record.
func (g *guard) revoked(c clustermesh.ClusterName) []string {
	said, _ := g.held.Record(clustermesh.Origin{Cluster: c})
	if len(g.Pins[c].Revoked) == 0 {
		return said.Content.Revoked
	}
	return slices.Concat(g.Pins[c].Revoked, said.Content.Revoked)
}

func (g *guard) revokes(c clustermesh.ClusterName, k authority.PublicKey) bool {
	gone := g.revoked(c)
	return len(gone) > 0 && slices.Contains(gone, k.Fingerprint())
}

// revocations reports whether keys were revoked, or are not any more, since it was called last: then all
// records must be judged again.
func (g *guard) revocations() (news bool) {
	for c := range g.Pins {
		if now := g.revoked(c); !slices.Equal(now, g.gone[c]) {
			g.gone[c], news = slices.Clone(now), true
		}
	}
	return news
}

// checkRevoked reports that the key of this machine was revoked. The lock is held.
func (g *Gossip) checkRevoked() {
	if g.guard.Pins == nil || !g.guard.revokes(g.cfg.Self.Cluster, g.guard.Node.Public()) {
		g.solved("revoked")
		return
	}
	g.problem("revoked", clustermesh.Problem{
		Code: problem.KeyRevoked, Object: "node " + g.cfg.Self.String(),
		Message: "the key of this machine was revoked, so nobody believes what it says",
		Try:     "if the machine is in the right hands: stop straitd, delete node.key in its stateDir, and start it (docs/security.md)",
	}, 0)
}
