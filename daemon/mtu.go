package daemon

import (
	"maps"
	"net/netip"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/wireguard"
)

// sizes are the largest packets in the tunnel, in bytes.
type sizes struct {
	// device is the MTU of the tunnel's device.
	device int
	// narrow has the prefixes whose peer takes only smaller packets, with the MTU of their routes.
	narrow map[netip.Prefix]int
}

// of returns how large a packet to a prefix can be.
func (s sizes) of(p netip.Prefix) int {
	if narrow := s.narrow[p]; narrow > 0 {
		return narrow
	}
	return s.device
}

func (s sizes) equal(t sizes) bool { return s.device == t.device && maps.Equal(s.narrow, t.narrow) }

const (
	// maxUnderlay is the largest underlay MTU that is accepted. The first link of a path to another
	// cluster can be larger than the links behind it, and those are Ethernet or less.
	maxUnderlay = 1500
	// minTunnel is the least MTU of a device with IPv6 (RFC 8200, section 5).
	minTunnel = 1280
)

// fit returns the sizes for peers whose underlays have these MTUs, in the same order; 0 is unknown.
// The device gets what the widest underlay leaves, and the routes to other peers less, so that a
// peer behind a narrow link does not slow down the rest.
func fit(peers []datapath.Peer, underlays []int) sizes {
	widest := 0
	for _, mtu := range underlays {
		widest = max(widest, mtu)
	}
	if widest == 0 {
		widest = maxUnderlay
	}
	s := sizes{device: inside(widest), narrow: map[netip.Prefix]int{}}
	for i, p := range peers {
		mtu := inside(underlays[i])
		if underlays[i] == 0 || mtu >= s.device {
			continue
		}
		// WireGuard fills a packet up to a multiple of 16 bytes, but not beyond the device's MTU.
		mtu -= mtu % wireguard.Padding
		for _, dst := range p.AllowedIPs {
			s.narrow[dst] = mtu
		}
	}
	return s
}

// inside returns the MTU of the tunnel over an underlay.
func inside(underlay int) int {
	return max(min(underlay, maxUnderlay)-wireguard.Overhead, minTunnel)
}

// routes returns the routes with their MTUs.
func (s sizes) routes(routes []datapath.Route) []datapath.Route {
	if len(s.narrow) == 0 {
		return routes
	}
	out := make([]datapath.Route, len(routes))
	for i, r := range routes {
		r.MTU = s.narrow[r.Dst]
		out[i] = r
	}
	return out
}

// sizes returns the configured MTU, or asks the kernel for the underlays of the peers.
func (k *kernel) sizes(peers []datapath.Peer) (sizes, error) {
	if mtu := k.config.Mesh.MTU; mtu != 0 {
		return sizes{device: mtu}, nil
	}
	dsts := make([]netip.Addr, 0, len(peers))
	for _, p := range peers {
		dsts = append(dsts, p.Underlay.Addr())
	}
	underlays, err := k.router.UnderlayMTUs(dsts)
	if err != nil {
		return sizes{}, err
	}
	return fit(peers, underlays), nil
}
