package plan

import (
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// Guests have a tunnel only because this cluster's operator pinned them. So a node of another cluster that
// merely claims what a guest has does not get it; but neither does a pin by mistake take anything from a
// node that proved or had it.

// origin is what a guest is called among those that claim things.
func (g Guest) origin() clustermesh.Origin {
	return clustermesh.Origin{Node: clustermesh.NodeName("peer " + g.Name)}
}

// heldGuests returns the guests that had a tunnel, by their names: to the device, or else in the last plan.
func (t *tunnels) heldGuests(m mesh) map[string]bool {
	out := map[string]bool{}
	for _, g := range m.guests {
		had, known := m.held.guest(g)
		out[g.Name] = had || !known && slices.ContainsFunc(t.kept.admitted, func(a Admitted) bool {
			return a.Name == g.Name && a.Key == g.Key && slices.Equal(a.Range, g.Range) && a.Why == "" && !a.Elsewhere
		})
	}
	return out
}

// claimKeys makes claims to the keys of guests, after those of nodes.
func (m mesh) claimKeys(nodes []node, keys contest[key.Public]) {
	stronger := map[key.Public]bool{} // than a pin that is new
	for i := range nodes {
		if n := &nodes[i]; n.keyProven || n.origin.Cluster == m.self.Cluster || m.held.key(n) {
			stronger[n.PublicKey] = true
		}
	}
	for _, g := range m.guests {
		here := len(g.Nodes) == 0 || slices.Contains(g.Nodes, m.self.Node)
		if _, taken := keys[g.Key]; taken && here && (m.heldGuests[g.Name] || !stronger[g.Key]) {
			keys.claim(g.Key, standing{node: g.origin(), proven: true, held: m.heldGuests[g.Name]})
			m.guestKeys[g.Key] = g.Name
		}
	}
}

// claimRanges makes claims to the ranges of the guests that had them.
func (m mesh) claimRanges() (out []claim) {
	for _, g := range m.guests {
		for _, p := range g.Range {
			if m.heldGuests[g.Name] {
				out = append(out, claim{standing: standing{node: g.origin(), held: true}, prefix: p.Masked()})
			}
		}
	}
	return out
}
