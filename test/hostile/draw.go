package hostile

import (
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/l4"
)

// one draws one of several.
func one[T any](c *Case, from ...T) T { return from[c.IntN(len(from))] }

// some draws up to that many.
func some[T any](c *Case, most int, draw func() T) (out []T) {
	for range c.IntN(most + 1) {
		out = append(out, draw())
	}
	return out
}

// chance is true once in n cases.
func (c *Case) chance(n int) bool { return c.IntN(n) == 0 }

// anyAddr draws an address: mostly one that a node has, or that no node may have.
func (c *Case) anyAddr() netip.Addr {
	switch c.IntN(8) {
	case 0: // a machine's
		return addr("192.0.2.%d", c.IntN(80))
	case 1, 2, 3: // a pod's
		return addr("10.%d.%d.%d", 1+c.IntN(4), c.IntN(12), c.IntN(16))
	case 4: // a ClusterIP
		return addr("10.%d.%d.%d", 101+c.IntN(3), c.IntN(3), c.IntN(16))
	case 5:
		return clustermesh.TunnelAddr(one(c, origin(west, 1), origin(east, 3), origin(east, 2), origin(evil, 2)), c.chance(2))
	case 6:
		return one(c, netip.IPv4Unspecified(), netip.IPv6Loopback(), addr("127.0.0.1"), addr("169.254.169.254"), addr("224.0.0.1"), addr("8.8.8.8"),
			addr("241.1.2.3"), addr("fe80::1"), addr("fd00:2::%x", c.IntN(9)), addr("::ffff:10.2.1.1"), addr("255.255.255.255"), addr("10.1.1.1"))
	}
	return netip.AddrFrom4([4]byte{byte(c.IntN(256)), byte(c.IntN(256)), byte(c.IntN(256)), byte(c.IntN(256))})
}

// anyPrefix draws a prefix: equal to a node's, wider, or nested in it. It can have bits that are not masked.
func (c *Case) anyPrefix() netip.Prefix {
	a := c.anyAddr()
	bits := one(c, 0, 8, 15, 16, 17, 23, 24, 25, 31, 32, 24, 32)
	if a.Is6() {
		bits *= 4
	}
	p := netip.PrefixFrom(a, bits)
	if !c.chance(8) {
		p = p.Masked()
	}
	return p
}

func (c *Case) anyName() clustermesh.NodeName {
	return one(c, "n0", "n1", "n2", "n3", "n9", clustermesh.NodeName(fmt.Sprint("m", c.IntN(99))))
}

func (c *Case) anyService() clustermesh.ServiceName {
	return clustermesh.ServiceName{
		Namespace: one(c, "evil-1", "evil-2", "shop-1", "own", "kube-system", "default", "com", "evil-"), Name: one(c, "bait", "both", "remote", "db", "kubernetes", "a"),
	}
}

func (c *Case) anyPlace() clustermesh.Locality {
	return clustermesh.Locality{Region: one(c, "west", "east", string(evil), ""), Zone: one(c, "west-1", "east-1", "evil-1", "", "x")}
}

// anyHolder draws what a kubelet makes of its Node: it sets the addresses and the annotations. Kubernetes
// gives the pod CIDR and the locality.
func (c *Case) anyHolder(h authority.Holder) authority.Holder {
	h.Addresses = append(some(c, 3, c.anyAddr), h.Addresses...)
	h.Annotated, h.Entry = some(c, 4, c.anyPrefix), some(c, 2, c.anyPrefix)
	if !c.entries {
		h.Annotated, h.Entry = slices.DeleteFunc(h.Annotated, entryIPs.Overlaps), slices.DeleteFunc(h.Entry, entryIPs.Overlaps)
	}
	return h
}

// anyWant draws what a node asks its root to state of it.
func (c *Case) anyWant(cluster clustermesh.ClusterName, h authority.Holder) authority.Statement {
	s := wanted(cluster, h)
	s.WireGuard, s.Locality, s.Serial, s.NotAfter = c.anyKey(), c.anyPlace(), c.Uint64(), c.Int64()
	s.Addresses = append(s.Addresses, some(c, 2, c.anyAddr)...)
	s.Prefixes = append(s.Prefixes, some(c, 4, c.anyPrefix)...)
	s.Addresses = s.Addresses[:min(len(s.Addresses), authority.MaxAddresses)]
	s.Proof, s.KeyProven = c.anyProof(s), false
	return s
}

// anyContent draws what a node or a leader says.
func (c *Case) anyContent(o clustermesh.Origin, s authority.Statement) clustermesh.Content {
	content := clustermesh.Content{
		Endpoints: some(c, 12, func() clustermesh.Endpoint { return c.anyEndpoint(o) }),
		Exports:   some(c, 5, c.anyExport), Mirrors: some(c, 5, c.anyExport),
		Globals: some(c, 5, func() clustermesh.Global {
			return clustermesh.Global{Service: c.anyService(), Ports: c.anyPorts(), IPs: some(c, 2, c.anyAddr), Shared: c.chance(2)}
		}),
		Allocations: some(c, 4, func() clustermesh.Allocation { return clustermesh.Allocation{Service: c.anyService(), IP: c.anyVIP()} }),
		Silent: some(c, 3, func() clustermesh.Silence {
			return clustermesh.Silence{Origin: origin(one(c, clusters...), 1+c.IntN(3)), Epoch: 1}
		}),
		Nodes: some(c, 3, c.anyName), Revoked: some(c, 1, func() string { return c.nodes[origin(east, 1)].stated.Key.Fingerprint() }),
		Late: some(c, 2, func() clustermesh.Late {
			return clustermesh.Late{Cluster: one(c, clusters...), Service: c.anyService(), Since: c.Int64N(3000)}
		}),
	}
	if o.Node != "" {
		content.Node = &clustermesh.Node{
			Name: o.Node, Locality: c.anyPlace(), PublicKey: one(c, s.WireGuard, c.anyKey()), WireGuardPort: one(c, 0, uint16(7000)), GossipPort: 7946,
			Addresses: append(some(c, 2, c.anyAddr), s.Addresses...), Prefixes: append(some(c, 4, c.anyPrefix), s.Prefixes...), Inside: c.anyAddr(),
			ClusterIPs: append(some(c, 2, c.anyPrefix), s.Prefixes[:c.IntN(len(s.Prefixes)+1)]...),
		}
	}
	slices.SortFunc(content.Allocations, func(a, b clustermesh.Allocation) int { return a.Service.Compare(b.Service) })
	return content
}

// anyVIP draws a ClusterSetIP, often one that an honest Service has.
func (c *Case) anyVIP() netip.Addr {
	if as := c.base.Allocations; len(as) > 0 && c.chance(2) {
		return as[c.IntN(len(as))].IP
	}
	return c.anyAddr()
}

func (c *Case) anyPorts() []clustermesh.ServicePort {
	return some(c, 3, func() clustermesh.ServicePort {
		return clustermesh.ServicePort{Name: one(c, "", "http", "x"), Proto: one(c, l4.TCP, l4.UDP), Port: one(c, uint16(0), 80, 443, 10250)}
	})
}

func (c *Case) anyExport() clustermesh.Export {
	return clustermesh.Export{
		Service: c.anyService(), Type: one(c, clustermesh.ClusterSetIP, clustermesh.Headless, "other"), Ports: c.anyPorts(), Created: c.Int64N(3000),
		Families: []clustermesh.Family{clustermesh.IPv4}, FamiliesDeclared: c.chance(2), IPs: some(c, 2, c.anyAddr), AffinitySeconds: uint32(c.IntN(3)),
		Labels:      map[string]string{one(c, "a", "kubernetes.io/metadata.name", "multicluster.kubernetes.io/service-name"): one(c, "b", "\x1b[0m", "db")},
		Annotations: map[string]string{one(c, "a", "strait.io/prefixes", "external-dns.alpha.kubernetes.io/hostname"): "x"},
	}
}

func (c *Case) anyEndpoint(o clustermesh.Origin) clustermesh.Endpoint {
	return clustermesh.Endpoint{
		Service: c.anyService(), Addr: c.anyAddr(), Node: one(c, o.Node, o.Node, c.anyName(), ""), Zone: one(c, "west-1", "evil-1", ""),
		Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: one(c, uint16(8080), 10250, 0)}}, Ready: true, Serving: true, OnHost: c.chance(3),
	}
}
