package trustlevel

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// Missing is what the leader must make before a cluster can trust signed records only. At most one field
// is set: each is made when the nodes have what it depends on.
type Missing struct {
	Root bool
	// Pins are the cluster's own, as text.
	Pins string
	// Pinned restricts trust to the pins.
	Pinned bool
}

// Lacks returns what is to be made next. Undecided: believeFile does not exist yet. Root is the key that
// is lent to this node.
func (o Open) Lacks(undecided bool, root string, own authority.Pin) Missing {
	switch {
	case !o.Make || !undecided:
	case !o.Pinned && root == "":
		return Missing{Root: true}
	case !o.Pinned:
		k, err := authority.ParsePrivate(root)
		if err != nil {
			return Missing{} // it is reported when there are pins
		}
		own.Roots = []authority.PublicKey{k.Public()}
		return Missing{Pins: string(authority.Pins{own.Cluster: own}.Encode())}
	case root != "" && (!o.Seeds || o.Known > 1) && len(o.Unpinned)+len(o.Unsigned)+len(o.Outside) == 0:
		// It cuts off no cluster. Where trust is restricted already, the ConfigMap is written again if it was
		// deleted: new nodes need it.
		return Missing{Pinned: true}
	}
	return Missing{}
}

// OwnPin returns a cluster's pin of itself, by its Nodes and its nodes' records. It is wide, because it
// keeps no cluster out: people confirm what other clusters pin of this one. It names no ranges
// of nodes, so that those of a new subnet are trusted too.
func OwnPin(own clustermesh.ClusterName, uid string, nodes []clustermesh.Node, s clustermesh.State) authority.Pin {
	pin := authority.Pin{Cluster: own, UID: uid, Namespaces: []string{"*"}}
	for _, p := range podPrefixes(own, nodes, s) {
		pin.Pods = append(pin.Pods, widened(p))
	}
	pin.Pods = distinct(pin.Pods)
	return pin
}

// podPrefixes returns the prefixes of a cluster's nodes, by their Node objects and their records.
func podPrefixes(own clustermesh.ClusterName, nodes []clustermesh.Node, s clustermesh.State) (out []netip.Prefix) {
	for _, n := range nodes {
		out = append(out, n.Prefixes...)
	}
	for o, r := range s.Records.All() {
		if o.Cluster == own && r.Content.Node != nil {
			for _, p := range r.Content.Node.Prefixes {
				if !clustermesh.IsTunnelAddr(p.Addr()) {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// widened returns a prefix that has room for more: as connect proposes.
func widened(p netip.Prefix) netip.Prefix {
	bits := 16
	if p.Addr().Is6() {
		bits = 48
	}
	return netip.PrefixFrom(p.Addr(), min(bits, p.Bits())).Masked()
}

// distinct sorts prefixes, and leaves out those inside of others.
func distinct(ps []netip.Prefix) (out []netip.Prefix) {
	slices.SortFunc(ps, netip.Prefix.Compare) // a wide one comes before those inside of it
	for _, p := range ps {
		if !slices.ContainsFunc(out, func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }) {
			out = append(out, p)
		}
	}
	return out
}

// Outside returns the prefixes of own nodes that are neither in their Nodes nor in the pinned pods, each
// with its node: no signer would certify them.
func Outside(own clustermesh.ClusterName, pin authority.Pin, nodes []clustermesh.Node, s clustermesh.State) (out []string) {
	objects := map[clustermesh.NodeName][]netip.Prefix{}
	for _, n := range nodes {
		objects[n.Name] = n.Prefixes
	}
	for o, r := range s.Records.All() {
		if o.Cluster != own || r.Content.Node == nil {
			continue
		}
		for _, p := range r.Content.Node.Prefixes {
			within := func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }
			if !clustermesh.IsTunnelAddr(p.Addr()) && !slices.ContainsFunc(slices.Concat(pin.Pods, objects[o.Node]), within) {
				out = append(out, fmt.Sprintf("%s of node %s", p, o.Node))
			}
		}
	}
	slices.Sort(out)
	return out
}
