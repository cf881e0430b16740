package trustlevel

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// Own is what is known of this cluster, from which others learn whom to pin.
type Own struct {
	Cluster clustermesh.ClusterName
	UID     string
	// Pin is the own pin in force.
	Pin authority.Pin
	// Root is the public key of the root that is lent to this node.
	Root authority.PublicKey
	// Nodes are its Node objects, and Port is that of their daemons' gossip.
	Nodes []clustermesh.Node
	Port  uint16
	State clustermesh.State
	// Signed are the roots that signed the statements about its nodes.
	Signed map[clustermesh.Origin]authority.PublicKey
}

// Member returns what others should pin of the cluster, and where they find it: its own pin,
// widened by what lies outside of it, with the root that it signs with now. While another root in
// the pin still counts for a node, it is listed too, so that a copy of the document cuts off none.
func (o Own) Member() authority.Member {
	m := authority.Member{Pin: o.Pin}
	m.Cluster, m.UID, m.Roots = o.Cluster, o.UID, []authority.PublicKey{o.Root}
	for _, root := range o.Pin.Roots {
		if root != o.Root && o.signs(root) {
			m.Roots = append(m.Roots, root)
		}
	}
	m.Pods = covering(o.Pin.Pods, podPrefixes(o.Cluster, o.Nodes, o.State), widened)
	var machines []netip.Prefix
	for _, n := range o.Nodes {
		for _, a := range n.Addresses {
			machines = append(machines, netip.PrefixFrom(a, a.BitLen()))
		}
		m.Regions = with(m.Regions, n.Locality.Region)
		m.Zones = with(m.Zones, n.Locality.Zone)
		if len(n.Addresses) > 0 && len(m.Seeds) < authority.MaxSeeds {
			m.Seeds = append(m.Seeds, netip.AddrPortFrom(n.Addresses[0], o.Port).String())
		}
	}
	m.Nodes = covering(o.Pin.Nodes, machines, machinesAround)
	slices.Sort(m.Seeds)
	return m
}

func (o Own) signs(root authority.PublicKey) bool {
	for origin, by := range o.Signed {
		if origin.Cluster == o.Cluster && by == root {
			return true
		}
	}
	return false
}

// covering returns the ranges, which an operator may have narrowed, and a wide one around each of
// those that are in none of them.
func covering(ranges, all []netip.Prefix, wide func(netip.Prefix) netip.Prefix) []netip.Prefix {
	out := slices.Clone(ranges)
	for _, p := range all {
		if !slices.ContainsFunc(out, func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }) {
			out = append(out, wide(p))
		}
	}
	return distinct(out)
}

// with returns a sorted list that has one more.
func with(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	list = append(slices.Clone(list), one)
	slices.Sort(list)
	return list
}

// machinesAround returns the range of machines that connect would propose for one.
func machinesAround(p netip.Prefix) netip.Prefix {
	bits := 24
	if p.Addr().Is6() {
		bits = 64
	}
	return netip.PrefixFrom(p.Addr(), bits).Masked()
}
