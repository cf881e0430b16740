package belief

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// Missing is what a cluster lacks to believe only what is signed, and its leader makes. At most one field
// is set: each is made when what it needs has come to the nodes.
type Missing struct {
	Root bool
	// Pins are the cluster's own, as text.
	Pins string
	// Pinned is that only the pins count.
	Pinned bool
}

// Lacks returns what is to be made next. Undecided is whether nothing says yet whom to believe, root the one
// that is lent to this node.
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
		// Nobody is cut off by it. Where only pins count already, the word is written again if it was
		// deleted: nodes that are new need it.
		return Missing{Pinned: true}
	}
	return Missing{}
}

// OwnPin returns what a cluster pins of itself, by its Nodes and what its nodes say now. It is wide, for it
// need not keep anybody out: what other clusters pin of this one is confirmed by people. It names no ranges
// of nodes, so that those of the next subnet are believed too.
func OwnPin(own clustermesh.ClusterName, uid string, nodes []clustermesh.Node, s clustermesh.State) authority.Pin {
	pin := authority.Pin{Cluster: own, UID: uid, Namespaces: []string{"*"}}
	for _, n := range nodes {
		for _, p := range n.Prefixes {
			pin.Pods = append(pin.Pods, widened(p))
		}
	}
	for o, r := range s.Records {
		if o.Cluster == own && r.Content.Node != nil {
			for _, p := range r.Content.Node.Prefixes {
				if !clustermesh.IsTunnelAddr(p.Addr()) {
					pin.Pods = append(pin.Pods, widened(p))
				}
			}
		}
	}
	pin.Pods = distinct(pin.Pods)
	return pin
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
// with its node: nobody would state them.
func Outside(own clustermesh.ClusterName, pin authority.Pin, nodes []clustermesh.Node, s clustermesh.State) (out []string) {
	objects := map[clustermesh.NodeName][]netip.Prefix{}
	for _, n := range nodes {
		objects[n.Name] = n.Prefixes
	}
	for o, r := range s.Records {
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
