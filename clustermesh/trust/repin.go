package trust

import (
	"maps"
	"reflect"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// Repin replaces the pins. It returns whose records must be admitted again: for the records of all other
// clusters, Admit returns what it returned before.
//
// What was verified stays verified while its root stays pinned: the signatures of a record and of its
// statement depend on no other part of a pin. Everything else is forgotten, and verified again.
func (s *Store) Repin(pins authority.Pins) (again func(clustermesh.ClusterName) bool) {
	before, receiver := s.pins, s.receiver
	receiver.Machines = maps.Clone(receiver.Machines)
	s.pin(pins)
	s.generation++
	s.requested = authority.Statement{} // the root may be another one
	same := unchanged(before, s.pins)
	for o := range s.verified.of {
		if !same[o.Cluster] && !slices.Contains(s.pins[o.Cluster].Roots, s.verified.of[o].Root) {
			s.verified.delete(o)
		}
	}
	clear(s.refusals)
	s.UpdateMachines()
	s.receive()
	s.stale = false
	if before == nil || s.pins == nil || !reflect.DeepEqual(receiver, s.receiver) {
		return func(clustermesh.ClusterName) bool { return true }
	}
	return func(c clustermesh.ClusterName) bool { return !same[c] }
}

// unchanged returns the clusters that have the same pin before and after.
func unchanged(before, after authority.Pins) map[clustermesh.ClusterName]bool {
	same := map[clustermesh.ClusterName]bool{}
	for c, pin := range before {
		if next, pinned := after[c]; pinned && reflect.DeepEqual(pin, next) {
			same[c] = true
		}
	}
	return same
}
