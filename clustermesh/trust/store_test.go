package trust

import (
	"bytes"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/authority/fake"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/key"
)

const year = 365 * 24 * time.Hour

func node(cluster, name string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(name)}
}

var root, seeded, pinned, placed = fake.Root, fake.Key, fake.Pins, fake.Placed

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
