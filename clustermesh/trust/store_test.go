package trust

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/key"
)

const year = 365 * 24 * time.Hour

func node(cluster, name string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(name)}
}

// root returns the root of a cluster, the same in each call.
func root(cluster string) *authority.PrivateKey { return seeded("root of " + cluster) }

func seeded(text string) *authority.PrivateKey {
	var k authority.PrivateKey
	copy(k[:], text)
	return &k
}

// pinned are pins of clusters, each with pods of its own, and all with machines in one network.
func pinned(clusters ...string) authority.Pins {
	ps := authority.Pins{}
	for i, c := range clusters {
		name := clustermesh.ClusterName(c)
		ps[name] = authority.Pin{
			Cluster: name, Roots: []authority.PublicKey{root(c).Public()}, Namespaces: []string{"*"},
			Pods:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16)},
			Nodes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		}
	}
	return ps
}

// signing returns the configuration of a machine that has the root, and believes the pinned clusters.
func signing(self clustermesh.Origin, pins authority.Pins) *Config {
	return &Config{Root: root(string(self.Cluster)), Node: *seeded("key of " + self.String()), Pins: pins}
}

// following returns the configuration of a machine that has no root.
func following(self clustermesh.Origin, pins authority.Pins) *Config {
	return &Config{Node: *seeded("key of " + self.String()), Pins: pins}
}

// tunnelsOf returns the WireGuard key of a node.
func tunnelsOf(o clustermesh.Origin) (k key.Private) {
	copy(k[:], "tunnels of "+o.String())
	return k
}

// proving returns the configuration of a machine that proves its WireGuard key.
func proving(t *testing.T, self clustermesh.Origin, c *Config) *Config {
	t.Helper()
	p, err := authority.ProveKey(bytes.NewReader(make([]byte, 64)), self, c.Node.Public(), tunnelsOf(self))
	if err != nil {
		t.Fatal(err)
	}
	c.Proof = p
	return c
}

// placed is the record of a node with pods in 10.n.0.0/16: one endpoint that tells a number.
func placed(o clustermesh.Origin, n byte, number string) clustermesh.Content {
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

// tunnelled is what a node with tunnels writes: placed, with the WireGuard key of an origin.
func tunnelled(o clustermesh.Origin, n byte, number string, keyOf clustermesh.Origin) clustermesh.Content {
	c := placed(o, n, number)
	c.Node.PublicKey = tunnelsOf(keyOf).Public()
	return c
}

// update makes the statement about a store's own node.
func (s *Store) update(t *testing.T, n *clustermesh.Node, now time.Time) bool {
	t.Helper()
	stated, err := s.UpdateStatement(n, now)
	if err != nil {
		t.Fatal(err)
	}
	return stated
}

// forged is a record of an origin that is newer than what the origin wrote.
func forged(t *testing.T, o clustermesh.Origin, c clustermesh.Content) replica.Entry {
	t.Helper()
	epoch := uint64(time.Now().Add(time.Minute).UnixNano())
	if o.Node == "" {
		epoch = uint64(time.Now().Add(time.Minute).UnixMilli())
	}
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: epoch, Version: 1}, Content: c})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
