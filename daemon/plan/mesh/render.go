package mesh

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
)

// Peers renders the configuration of the node's WireGuard device: every node to which a tunnel leads,
// with what is reached through it, then the guests. A device takes no peer with its own key.
func (m *Mesh) Peers() (out []datapath.Peer) {
	through := m.through()
	for _, e := range m.Ends {
		if allowed := through[e.Origin]; len(allowed) > 0 && e.Why == "" && e.Key != m.Key {
			out = append(out, datapath.Peer{Name: e.Origin.String(), Key: e.Key, Underlay: e.Underlay, AllowedIPs: sorted(allowed), Inside: e.Inside})
		}
	}
	for _, g := range m.Guests {
		if g.here() {
			out = append(out, datapath.Peer{Name: "peer/" + g.Name, Key: g.Key, Underlay: g.Endpoint, AllowedIPs: sorted(g.Range), Guest: true})
		}
	}
	return out
}

// through returns what is reached through the tunnel to each node.
func (m *Mesh) through() map[clustermesh.Origin][]netip.Prefix {
	out := make(map[clustermesh.Origin][]netip.Prefix, len(m.Ends))
	for _, e := range m.Ends {
		if e.Via != (clustermesh.Origin{}) {
			out[e.Via] = append(out[e.Via], e.AllowedIPs...)
		}
	}
	return out
}

// Sources renders which packets may enter and leave the tunnels on this node.
func (m *Mesh) Sources() datapath.Sources {
	out := m.Own
	for _, g := range m.Guests {
		if g.here() {
			out.Guests = append(out.Guests, datapath.Guest{Name: g.Name, Range: sorted(g.Range), To: g.Reach})
		}
	}
	return out
}

// Routes renders the routes: each peer's prefixes lead into the tunnel, and the rest of the
// ClusterSetIP ranges is unreachable: a connection to a port without a frontend must fail at once,
// not leave the node. So are ranges that only tunnels may lead to. Routes to peers' prefixes are
// more specific than these, or equal, and then the range is left to them.
func (m *Mesh) Routes() (out []datapath.Route) {
	for _, peer := range m.Peers() {
		for _, dst := range peer.AllowedIPs {
			r := datapath.Route{Dst: dst}
			if src := m.Own.Node; src.IsValid() && src.Is4() == dst.Addr().Is4() {
				r.Src = src
			}
			out = append(out, r)
		}
	}
	for _, c := range m.ClusterSetIPs {
		out = append(out, datapath.Route{Dst: c.Masked(), Unreachable: true})
	}
	led := make(map[netip.Prefix]bool, len(out))
	for _, r := range out {
		led[r.Dst] = true
	}
	for _, p := range m.TunnelOnly {
		if !led[p] {
			led[p] = true
			out = append(out, datapath.Route{Dst: p, Unreachable: true})
		}
	}
	slices.SortFunc(out, func(a, b datapath.Route) int { return comparePrefix(a.Dst, b.Dst) })
	return out
}
