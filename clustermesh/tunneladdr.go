package clustermesh

import "net/netip"

// tunnelRanges hold the addresses of nodes that have none in their own pod network. As ClusterSetIPs lie in a
// part of class E, which is unicast to Linux and routed by nobody, so do these in another; 242.0.0.0/8 is
// Submariner's. Of IPv6 it is a unique local prefix ("strai" in ASCII).
var tunnelRanges = [...]netip.Prefix{netip.MustParsePrefix("243.0.0.0/8"), netip.MustParsePrefix("fd73:7472:6169::/48")}

// TunnelAddr is an address for a node that has none in its own pod network, as with CNIs that route to each pod:
// a hash of its name. Of 10,000 nodes about three pairs hash to the same; the one that loses the claim cannot
// call out itself, and its pods can.
func TunnelAddr(o Origin, is6 bool) netip.Addr {
	if is6 {
		return hashAddr(tunnelRanges[1], o.String())
	}
	return hashAddr(tunnelRanges[0], o.String())
}

// IsTunnelAddr reports that an address is one that TunnelAddr gives.
func IsTunnelAddr(a netip.Addr) bool {
	return tunnelRanges[0].Contains(a) || tunnelRanges[1].Contains(a)
}
