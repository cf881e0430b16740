package trust

import (
	"errors"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// ErrRevoked means that the key with which a node signs was revoked.
var ErrRevoked = errors.New("the key was revoked")

// revokedKeys returns the fingerprints of a cluster's revoked keys: by its pin here, and by its own
// record.
func (s *verifier) revokedKeys(c clustermesh.ClusterName) []string {
	var stated []string
	if own := s.records.Peek(clustermesh.Origin{Cluster: c}); own != nil {
		stated = own.Content.Revoked
	}
	if here := s.pins[c].Revoked; len(here) > 0 {
		return slices.Concat(here, stated)
	}
	return stated
}

// Revokes reports whether a cluster has revoked a key.
func (s *verifier) Revokes(c clustermesh.ClusterName, k authority.PublicKey) bool {
	revoked := s.revokedKeys(c)
	return len(revoked) > 0 && slices.Contains(revoked, k.Fingerprint())
}

// updateRevoked reports whether keys were revoked, or are not any more, since it was called last.
func (s *verifier) updateRevoked() (changed bool) {
	for c := range s.pins {
		now := s.revokedKeys(c)
		if !slices.Equal(now, s.revoked[c]) {
			s.revoked[c] = slices.Clone(now)
			changed = true
		}
	}
	return changed
}
