package mesh

import (
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// Tunnel is one of a node's tunnels to other nodes of the clusterset.
type Tunnel struct {
	To clustermesh.Origin
	// Reached are the nodes that packets reach through it, sorted.
	Reached []clustermesh.Origin
}

// Tunnels returns the tunnels of any node of the clusterset as this node sees them, sorted by where they lead.
func (m *Mesh) Tunnels(of clustermesh.Origin) (out []Tunnel) {
	if e, is := m.End(of); !is || e.Why != "" {
		return nil
	}
	via, at := m.via(of), map[clustermesh.Origin]int{}
	for i := range m.Ends {
		hop := via(&m.Ends[i])
		if hop == (clustermesh.Origin{}) {
			continue
		}
		if _, is := at[hop]; !is {
			at[hop], out = len(out), append(out, Tunnel{To: hop})
		}
		t := &out[at[hop]]
		t.Reached = append(t.Reached, m.Ends[i].Origin)
	}
	slices.SortFunc(out, func(a, b Tunnel) int { return a.To.Compare(b.To) })
	return out
}

// lead sets by which tunnels packets for the ends travel. Nodes are those of the ends, in the same order.
func (m *Mesh) lead(t topology.Topology, nodes []node) {
	if m.topology = t; t == nil {
		m.topology = topology.Default()
	}
	for i, e := range m.Ends {
		if e.Why == "" && !nodes[i].dead {
			m.live = append(m.live, e.Origin)
		}
	}
	via := m.via(m.Self)
	for i := range m.Ends {
		m.Ends[i].Via = via(&m.Ends[i])
	}
}

// via returns to which node the tunnel leads that a node's packets for an end enter; zero if they enter none.
func (m *Mesh) via(from clustermesh.Origin) func(*End) clustermesh.Origin {
	hop := topology.Tunnels(m.topology, from, m.live)
	return func(e *End) clustermesh.Origin {
		if e.Why != "" {
			return clustermesh.Origin{}
		}
		to := hop(e.Origin)
		if is, known := m.End(to); !known || is.Why != "" {
			return clustermesh.Origin{}
		}
		return to
	}
}
