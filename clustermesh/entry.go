package clustermesh

import (
	"net/netip"
	"slices"
)

// Entries returns the ranges of a cluster's ClusterIPs that a node of it is the entry to. A dead machine
// counts, because it can come back. Own are the ranges of the reader's own ClusterIPs: what overlaps them
// is not routed.
func (s State) Entries(c ClusterName, own []netip.Prefix) (out []netip.Prefix) {
	for r := range s.Nodes() {
		if r.Origin.Cluster != c {
			continue
		}
		for _, p := range r.Content.Node.ClusterIPs {
			if !slices.ContainsFunc(own, p.Overlaps) {
				out = append(out, p)
			}
		}
	}
	return out
}

// How far apart ClusterIPs can be that are taken for neighbours in one range. Kubernetes' own default is
// a /12, and a cluster may have several ranges, so addresses that are far apart imply nothing of those between.
const near4, near6 = 16, 64

// Around returns the narrowest ranges that hold some ClusterIPs: those that are near each other in one.
// They are sorted.
func Around(ips []netip.Addr) (out []netip.Prefix) {
	narrowest := map[netip.Prefix]netip.Prefix{}
	for _, ip := range ips {
		bits := near4
		if ip.Is6() {
			bits = near6
		}
		group, err := ip.Prefix(bits)
		if err != nil { // it is no address
			continue
		}
		p, found := narrowest[group]
		if !found {
			p = netip.PrefixFrom(ip, ip.BitLen())
		}
		for !p.Contains(ip) {
			p = netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
		}
		narrowest[group] = p
	}
	for _, p := range narrowest {
		out = append(out, p)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}
