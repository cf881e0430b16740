package gossip

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// Trust is whom this node believes, and why.
type Trust struct {
	// Pins are nil if everybody who has the gossip key is believed. Listed are the pins all the same.
	Pins, Listed authority.Pins
	// Statements are those about nodes whose records are believed, and about this node.
	Statements map[clustermesh.Origin]authority.Statement
	// Sealed are the records with a seal. Roots are those that sealed the records of clusters that are
	// believed, unless this node wrote them.
	Sealed map[clustermesh.Origin]bool
	Roots  map[clustermesh.ClusterName]authority.PublicKey
	// Strangers are clusters that say something here and are not pinned, sorted.
	Strangers []clustermesh.ClusterName
}

// Trust returns whom this node believes. The maps are never changed afterwards.
func (g *Gossip) Trust() Trust {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := Trust{
		Pins: g.guard.Pins, Listed: g.guard.signers, Statements: map[clustermesh.Origin]authority.Statement{},
		Sealed: map[clustermesh.Origin]bool{}, Roots: map[clustermesh.ClusterName]authority.PublicKey{},
	}
	for o, p := range g.guard.proven {
		if o.Node != "" {
			t.Statements[o] = p.Statement
		} else {
			t.Roots[o.Cluster] = p.Root
		}
	}
	for _, e := range g.replica.Entries() {
		t.Sealed[e.Record.Origin] = len(e.Seal()) > 0
	}
	if g.guard.stated.signed != nil {
		t.Statements[g.cfg.Self] = g.guard.stated.Statement
	}
	strangers := map[clustermesh.ClusterName]bool{}
	for r := range g.guard.refused {
		if r.reason == authority.ErrNotPinned {
			strangers[r.cluster] = true
		}
	}
	t.Strangers = slices.Sorted(maps.Keys(strangers))
	return t
}
