package hostile

import (
	"fmt"
	"net/netip"
	"path"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/record"
)

// evilRecord draws a record of evil as its root can sign it, and what of it is in force at west.
func (c *Case) evilRecord(o clustermesh.Origin) (authority.Statement, clustermesh.Record) {
	h := holder(evil, 1+c.IntN(9))
	h.Name = o.Node
	s := c.anyWant(evil, c.anyHolder(h))
	s = s.WithProof(s.Proof) // as OpenStatement does
	r := clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 2, Version: 1}}
	r.Content, r.Problems = record.Usable(o, c.anyContent(o, s))
	return s, authority.Admit(c.self, c.pins[evil], s, r)
}

// pinned has a cluster with its root say whatever it likes.
func (c *Case) pinned() error {
	o := clustermesh.Origin{Cluster: evil, Node: one(c, c.anyName(), "")}
	s, r := c.evilRecord(o)
	if err := c.proven(r); err != nil {
		return err
	}
	return c.contained(o, s, r.Content)
}

// contained returns what of evil's record is outside its pin, or outside what its root stated.
func (c *Case) contained(o clustermesh.Origin, s authority.Statement, got clustermesh.Content) error {
	pin := c.pins[evil]
	ours := func(a netip.Addr) bool { return in(c.self.Own, a) || c.self.Machines[a] }
	if err := c.containedNode(o, s, got.Node); err != nil {
		return err
	}
	for _, e := range got.Endpoints {
		switch {
		case e.Node != o.Node, ours(e.Addr), !in(pin.Pods, e.Addr) && !in(pin.Nodes, e.Addr), clustermesh.CheckHost(e.Addr) != nil:
			return fmt.Errorf("endpoint %+v", e)
		case e.Node != "" && !in(s.Prefixes, e.Addr) && !slices.Contains(s.Addresses, e.Addr):
			return fmt.Errorf("endpoint %+v, which is not on its node", e)
		case !open(e.Service):
			return fmt.Errorf("endpoint of %s", e.Service)
		}
	}
	for _, e := range slices.Concat(got.Exports, got.Mirrors) {
		if !open(e.Service) {
			return fmt.Errorf("export of %s", e.Service)
		}
	}
	for _, e := range got.Mirrors {
		if slices.ContainsFunc(e.IPs, func(a netip.Addr) bool { return !in(pin.Pods, a) || ours(a) }) {
			return fmt.Errorf("mirror with %v", e.IPs)
		}
	}
	if i := slices.IndexFunc(got.Globals, func(g clustermesh.Global) bool { return !open(g.Service) }); i >= 0 {
		return fmt.Errorf("global Service %s", got.Globals[i].Service)
	}
	if len(got.Config) > 0 {
		return fmt.Errorf("configuration %+v", got.Config)
	}
	for what, n := range map[string][2]int{
		"endpoints": {len(got.Endpoints), quota.Endpoints}, "exports": {len(got.Exports), quota.Exports},
		"mirrors": {len(got.Mirrors), quota.Exports}, "globals": {len(got.Globals), quota.Exports}, "nodes": {len(got.Nodes), quota.Nodes},
	} {
		if n[0] > n[1] {
			return fmt.Errorf("%d %s, and the quota is %d", n[0], what, n[1])
		}
	}
	return nil
}

func (c *Case) containedNode(o clustermesh.Origin, s authority.Statement, n *clustermesh.Node) error {
	if n == nil {
		return nil
	}
	pin := c.pins[evil]
	for _, p := range n.Prefixes {
		tunnel := p.IsSingleIP() && p.Addr() == clustermesh.TunnelAddr(o, p.Addr().Is6())
		if !tunnel && (!within(pin.Pods, p) || !within(s.Prefixes, p) || slices.ContainsFunc(c.self.Own, p.Overlaps)) {
			return fmt.Errorf("prefix %s", p)
		}
	}
	for _, a := range n.Addresses {
		if !in(pin.Nodes, a) || !slices.Contains(s.Addresses, a) || in(c.self.Own, a) {
			return fmt.Errorf("address %s", a)
		}
	}
	if n.Inside.IsValid() && !in(n.Prefixes, n.Inside) || n.PublicKey != s.WireGuard {
		return fmt.Errorf("inside %s, key %s", n.Inside, n.PublicKey)
	}
	if l := n.Locality; l != (clustermesh.Locality{}) && l.Region != string(evil) {
		return fmt.Errorf("locality %v", l)
	}
	for _, p := range n.ClusterIPs {
		if !slices.Contains(n.Prefixes, p) {
			return fmt.Errorf("ClusterIPs %s", p)
		}
	}
	return nil
}

// open reports whether west accepts a Service of evil.
func open(s clustermesh.ServiceName) bool {
	ok, err := path.Match("evil-*", s.Namespace)
	return ok && err == nil
}
