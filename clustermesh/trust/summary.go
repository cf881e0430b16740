package trust

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// Summary is whom a node believes, and why.
type Summary struct {
	// Pins are nil if everyone who has the gossip key is believed. Listed are the pins even then.
	Pins, Listed authority.Pins
	// Statements are those about nodes whose records are believed, and about this node.
	Statements map[clustermesh.Origin]authority.Statement
	// Sealed are the records with a seal. Roots are those that sealed the records of clusters that are
	// believed, unless this node wrote them.
	Sealed map[clustermesh.Origin]bool
	Roots  map[clustermesh.ClusterName]authority.PublicKey
	// Strangers are clusters that send records here and are not pinned, sorted.
	Strangers []clustermesh.ClusterName
}

// Summary returns whom this node believes, except for Sealed. The maps are new.
func (s *Store) Summary() Summary {
	t := Summary{
		Pins: s.pins, Listed: s.listed, Statements: map[clustermesh.Origin]authority.Statement{},
		Roots: map[clustermesh.ClusterName]authority.PublicKey{},
	}
	for o, v := range s.verified.of {
		if o.Node != "" {
			t.Statements[o] = v.Statement
		} else {
			t.Roots[o.Cluster] = v.Root
		}
	}
	if s.current.Bytes != nil {
		t.Statements[s.self] = s.current.Statement
	}
	strangers := map[clustermesh.ClusterName]bool{}
	for r := range s.refusals {
		if r.reason == authority.ErrNotPinned {
			strangers[r.cluster] = true
		}
	}
	t.Strangers = slices.Sorted(maps.Keys(strangers))
	return t
}
