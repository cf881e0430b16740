package mesh

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

// guestsThatHad returns the guests that had a tunnel: to the device, or else in the last mesh.
func (m work) guestsThatHad(kept *Mesh) map[string]bool {
	out := map[string]bool{}
	for _, g := range m.Guests {
		had, known := m.had.guest(g)
		out[g.Name] = had || !known && kept != nil && slices.ContainsFunc(kept.Guests, func(a Admitted) bool {
			return a.Name == g.Name && a.Key == g.Key && slices.Equal(a.Range, g.Range) && a.here()
		})
	}
	return out
}

// claimKeys makes claims to the keys of guests, after those of nodes.
func (m work) claimKeys(nodes []node, keys contest[key.Public]) {
	stronger := map[key.Public]bool{} // than a pin that is new
	for i := range nodes {
		if n := &nodes[i]; n.keyProven || n.origin.Cluster == m.Self.Cluster || m.had.key(n) {
			stronger[n.PublicKey] = true
		}
	}
	for _, g := range m.Guests {
		here := len(g.Nodes) == 0 || slices.Contains(g.Nodes, m.Self.Node)
		if _, taken := keys[g.Key]; taken && here && (m.hadGuests[g.Name] || !stronger[g.Key]) {
			keys.claim(g.Key, standing{node: g.origin(), proven: true, had: m.hadGuests[g.Name]})
			m.guestKeys[g.Key] = g.Name
		}
	}
}

// claimRanges makes claims to the ranges of the guests that had them.
func (m work) claimRanges() (out []claim) {
	for _, g := range m.Guests {
		for _, p := range g.Range {
			if m.hadGuests[g.Name] {
				out = append(out, claim{standing: standing{node: g.origin(), had: true}, prefix: p.Masked()})
			}
		}
	}
	return out
}
