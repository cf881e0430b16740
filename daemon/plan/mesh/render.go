package mesh

import (
	"net/netip"
	"slices"

	"strait.io/strait/datapath"
)

// Peers renders the configuration of the node's WireGuard device: every node of another cluster
// that can be a peer, then the guests. Inside a cluster, pods reach each other over the cluster's
// own network. A device takes no peer with its own key.
func (m *Mesh) Peers() (out []datapath.Peer) {
	for _, e := range m.Ends {
		if e.Why == "" && e.Origin.Cluster != m.Self.Cluster && e.Key != m.Key {
			out = append(out, datapath.Peer{Name: e.Origin.String(), Key: e.Key, Underlay: e.Underlay, AllowedIPs: e.AllowedIPs, Inside: e.Inside})
		}
	}
	for _, g := range m.Guests {
		if g.here() {
			out = append(out, datapath.Peer{Name: "peer/" + g.Name, Key: g.Key, Underlay: g.Endpoint, AllowedIPs: sorted(g.Range), Guest: true})
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
