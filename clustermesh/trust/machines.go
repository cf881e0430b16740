package trust

import (
	"maps"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh/authority"
)

// addMachines notes the addresses that a node of this cluster has by a statement.
func (s *verifier) addMachines(stated authority.Statement) {
	if stated.Cluster != s.self.Cluster {
		return
	}
	for _, a := range stated.Addresses {
		if !s.machines[a] && s.isOurs(a) {
			s.machines[a], s.stale = true, true
		}
	}
}

// UpdateMachines forgets the addresses that nodes of this cluster have no more: other clusters can have
// them again.
func (s *Store) UpdateMachines() {
	had, stale := maps.Clone(s.machines), s.stale
	clear(s.machines)
	for o := range s.verified.ours {
		if s.records.Peek(o) != nil || o == s.self {
			s.addMachines(s.verified.of[o].Statement)
		}
	}
	if s.current.Bytes != nil {
		s.addMachines(s.current.Statement)
	}
	s.stale = stale || !maps.Equal(had, s.machines)
}

// isOurs reports whether an address can be that of a machine of this cluster, so that it belongs to no pod
// of another one. What a node claims outside the pinned ranges takes nothing from others.
func (s *verifier) isOurs(a netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	for c, p := range s.pins {
		if c != s.self.Cluster && slices.ContainsFunc(p.Pods, contains) {
			return false
		}
	}
	return slices.ContainsFunc(s.pins[s.self.Cluster].Nodes, contains)
}
