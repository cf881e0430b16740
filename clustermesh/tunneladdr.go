package clustermesh

import "net/netip"

// tunnelRanges are the ranges for nodes that have no address in their own pod network. Like the
// ClusterSetIPs, the IPv4 range is part of class E, which is unicast to Linux and which no network
// routes; 242.0.0.0/8 is Submariner's. The IPv6 range is a unique local prefix ("strai" in ASCII).
var tunnelRanges = [...]netip.Prefix{netip.MustParsePrefix("243.0.0.0/8"), netip.MustParsePrefix("fd73:7472:6169::/48")}

// TunnelAddr returns an address for a node that has none in its own pod network, as with CNIs that
// route to each pod: a hash of its name. Among 10,000 nodes about three pairs have the same IPv4 hash, and
// a person who names nodes can look for a name that has another node's. So the hash decides nothing: the address is
// a prefix like others, which stays with the node that had it first. The other one cannot connect to other
// clusters itself, but its pods can, and both get a Problem; where it is not known which was first, neither can.
func TunnelAddr(o Origin, is6 bool) netip.Addr {
	if is6 {
		return hashAddr(tunnelRanges[1], o.String())
	}
	return hashAddr(tunnelRanges[0], o.String())
}

// TunnelRange returns the range of TunnelAddr that overlaps a prefix.
func TunnelRange(p netip.Prefix) (netip.Prefix, bool) {
	for _, r := range tunnelRanges {
		if r.Overlaps(p) {
			return r, true
		}
	}
	return netip.Prefix{}, false
}

// IsTunnelAddr reports whether an address is in the ranges that TunnelAddr uses.
func IsTunnelAddr(a netip.Addr) bool {
	return tunnelRanges[0].Contains(a) || tunnelRanges[1].Contains(a)
}
