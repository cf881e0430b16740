package mesh

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// End is a node of the clusterset as a WireGuard peer.
type End struct {
	Origin clustermesh.Origin
	Key    key.Public
	// Underlay is where the tunnel leads. AllowedIPs are what the node got of its prefixes, sorted.
	Underlay   netip.AddrPort
	AllowedIPs []netip.Prefix
	// Inside is where its daemon is reached in the tunnel; can be invalid.
	Inside netip.AddrPort
	// Via is the node that the tunnel leads to which this node's packets for it enter: the node itself, or a
	// gateway. Zero if they enter none.
	Via clustermesh.Origin
	// Why is why no tunnel leads to the node; empty if one does.
	Why string
}

// End returns a node as a peer, if it is one of the clusterset's.
func (m *Mesh) End(o clustermesh.Origin) (e End, is bool) {
	i, is := slices.BinarySearchFunc(m.Ends, o, func(e End, o clustermesh.Origin) int { return e.Origin.Compare(o) })
	if is {
		e = m.Ends[i]
	}
	return e, is
}

// Hop returns the node that the tunnel leads to which packets for a node enter; zero if they enter none.
func (m *Mesh) Hop(o clustermesh.Origin) clustermesh.Origin {
	e, _ := m.End(o)
	return e.Via
}

// describe returns all nodes as peers. Problems are those that kept nodes from being ends.
func (m work) describe(nodes []node, ends map[clustermesh.Origin]netip.AddrPort, owned map[clustermesh.Origin][]netip.Prefix, problems []clustermesh.Problem) []End {
	why := make(map[string]string, len(problems))
	for _, p := range problems {
		if !p.Warning {
			why[p.Object] = p.Message + "; " + p.Try
		}
	}
	out := make([]End, 0, len(nodes))
	for _, n := range nodes {
		e := End{Origin: n.origin, Key: n.PublicKey, Underlay: ends[n.origin], AllowedIPs: owned[n.origin], Inside: netip.AddrPortFrom(n.Inside, n.GossipPort)}
		switch reason := why["node "+n.origin.String()]; {
		case !m.On:
			e.Why = "the mesh is off on the node that was asked; set mesh.mode to wireguard"
		case n.PublicKey.IsZero():
			e.Why = "the mesh is off on it; set mesh.mode to wireguard there"
		case reason != "":
			e.Why = reason
		case !e.Underlay.IsValid():
			e.Why = "each of its prefixes belongs to another node, or cannot be a pod's; strait status says which"
		}
		out = append(out, e)
	}
	return out
}
