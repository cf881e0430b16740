// Package fake has keys, pins and records of clusters, for tests of who is trusted.
//
// Inputs are names; outputs follow from them alone, so that two tests have the same root of a cluster. Pure. It must
// not know what the tests decide, nor anything random.
package fake

import (
	"net/netip"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// Root returns the root of a cluster.
func Root(cluster string) *authority.PrivateKey { return Key("root of " + cluster) }

// Key returns the key of a text, of which the first 32 bytes count.
func Key(text string) *authority.PrivateKey {
	var k authority.PrivateKey
	copy(k[:], text)
	return &k
}

// Pins returns pins of clusters: the nth has pods in 10.n.0.0/16, and all have machines in one network.
func Pins(clusters ...string) authority.Pins {
	ps := authority.Pins{}
	for i, c := range clusters {
		name := clustermesh.ClusterName(c)
		ps[name] = authority.Pin{
			Cluster: name, Roots: []authority.PublicKey{Root(c).Public()}, Namespaces: []string{"*"},
			Pods:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16)},
			Nodes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		}
	}
	return ps
}

// Placed returns the record of a node with pods in 10.n.0.0/16: one endpoint, whose pod is a number.
func Placed(o clustermesh.Origin, n byte, number string) clustermesh.Content {
	return clustermesh.Content{
		Node: &clustermesh.Node{
			Name: o.Node, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n + 1})},
			Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 1, 0}), 24)},
		},
		Endpoints: []clustermesh.Endpoint{{
			Service: clustermesh.ServiceName{Namespace: "default", Name: "serve"},
			Addr:    netip.AddrFrom4([4]byte{10, n, 1, 7}), Pod: number, Node: o.Node, Ready: true,
		}},
	}
}
