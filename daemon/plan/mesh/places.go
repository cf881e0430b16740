package mesh

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
)

// places is whose pods and machines have which addresses. Immutable.
type places struct {
	owned map[clustermesh.Origin][]netip.Prefix
	// owner has the prefixes that are in force, and bits their lengths, the longest first.
	owner map[netip.Prefix]clustermesh.ClusterName
	bits  []int
	// lost are prefixes that nodes claim and do not have.
	lost map[clustermesh.Origin][]netip.Prefix
	// machines are the addresses that nodes state of themselves, each with the cluster to which it
	// belongs. It is empty if it is not known which of several.
	machines map[netip.Addr]clustermesh.ClusterName
}

func (m work) places(nodes []node, owned, lost map[clustermesh.Origin][]netip.Prefix, kept *Mesh) places {
	p := places{owned: owned, owner: map[netip.Prefix]clustermesh.ClusterName{}, machines: map[netip.Addr]clustermesh.ClusterName{}}
	if m.On { // otherwise no tunnel leads elsewhere
		p.lost = lost
	}
	for o, ps := range owned {
		for _, q := range ps {
			p.owner[q] = o.Cluster
			if !slices.Contains(p.bits, q.Bits()) {
				p.bits = append(p.bits, q.Bits())
			}
		}
	}
	slices.SortFunc(p.bits, func(a, b int) int { return b - a })
	disputed := map[netip.Addr][]*node{}
	for i := range nodes {
		n := &nodes[i]
		for _, a := range n.Addresses {
			if of, taken := p.machines[a]; taken && of != n.origin.Cluster {
				disputed[a] = nil
			}
			p.machines[a] = n.origin.Cluster
		}
	}
	for i := range nodes {
		for _, a := range nodes[i].Addresses {
			if _, is := disputed[a]; is {
				disputed[a] = append(disputed[a], &nodes[i])
			}
		}
	}
	for a, all := range disputed {
		for _, n := range all {
			m.disputed[n.origin] = true
		}
		p.machines[a] = m.whose(a, all, kept)
	}
	return p
}

// whose decides to which cluster an address belongs that nodes of several state: the one of which a
// node was dialled there, or else the one that had it. It is empty if that is not known.
func (m work) whose(a netip.Addr, nodes []*node, kept *Mesh) clustermesh.ClusterName {
	claims := map[clustermesh.ClusterName]standing{}
	for _, n := range nodes {
		c := claims[n.origin.Cluster]
		c.node = n.origin
		c.proven = c.proven || n.at == a
		if at := netip.AddrPortFrom(a, n.WireGuardPort); m.had.underlays[at] {
			c.had = c.had || m.had.underlay(n, at)
		} else {
			c.had = c.had || kept != nil && kept.places.machines[a] == n.origin.Cluster
		}
		claims[n.origin.Cluster] = c
	}
	all := slices.Collect(maps.Values(claims))
	for i, v := range settle(all, func(_, _ int) bool { return true }) {
		if v.won() {
			return all[i].node.Cluster
		}
	}
	return ""
}

// of returns the cluster in whose pods' prefix an address is; the longest one counts, as for
// packets.
func (p *places) of(a netip.Addr) clustermesh.ClusterName {
	for _, bits := range p.bits {
		if q, err := a.Prefix(bits); err == nil {
			if c, is := p.owner[q]; is {
				return c
			}
		}
	}
	return ""
}

// Stray is an endpoint whose address is not its cluster's.
type Stray struct {
	// Of is the cluster that has the address; empty if none has.
	Of clustermesh.ClusterName
	// Why is why no client may connect to it; empty if that is harmless: a cluster can list another
	// one's pods.
	Why string
}

// Stray returns whether an endpoint of a node has an address that is not its cluster's.
func (m *Mesh) Stray(o clustermesh.Origin, a netip.Addr) (Stray, bool) {
	p, contains := &m.places, func(q netip.Prefix) bool { return q.Contains(a) }
	if slices.ContainsFunc(p.owned[o], contains) {
		return Stray{}, false
	}
	of := p.of(a)
	if slices.ContainsFunc(p.lost[o], contains) {
		if of == "" {
			return Stray{Why: "its node does not have the prefix of its address, which another one claims too"}, true
		}
		return Stray{of, fmt.Sprintf("its address belongs to a node of cluster %s, which has the prefix", of)}, true
	}
	if of == o.Cluster {
		return Stray{}, false
	}
	switch machine, is := p.machines[a]; {
	case of != "":
		return Stray{Of: of}, true
	case !is || machine == o.Cluster:
		return Stray{}, false
	case machine == "":
		return Stray{Why: "nodes of several clusters have its address, and it is not known whose it is"}, true
	default:
		return Stray{machine, fmt.Sprintf("its address is that of a node of cluster %s", machine)}, true
	}
}
