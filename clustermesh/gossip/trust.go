package gossip

import (
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// Trust is whom this node believes, and why.
type Trust struct {
	// Pins are nil if everybody who has the gossip key is believed.
	Pins authority.Pins
	// Statements are those about nodes whose records are believed, and about this node.
	Statements map[clustermesh.Origin]authority.Statement
	// Strangers are clusters that say something here and are not pinned, sorted.
	Strangers []clustermesh.ClusterName
}

// Trust returns whom this node believes. The maps are never changed afterwards.
func (g *Gossip) Trust() Trust {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := Trust{Pins: g.guard.Pins, Statements: map[clustermesh.Origin]authority.Statement{}}
	for o, p := range g.guard.proven {
		if o.Node != "" {
			t.Statements[o] = p.Statement
		}
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
