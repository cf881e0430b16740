package node

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/authority/fake"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/trust"
)

const year = 365 * 24 * time.Hour

// at is when the tests are.
var at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func origin(cluster, name string) clustermesh.Origin {
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(name)}
}

// config returns the configuration of a node that believes everyone.
func config(self clustermesh.Origin, now time.Time) Config {
	addr := netip.MustParseAddrPort("192.0.2.1:7946")
	return Config{
		Self: self, Bind: addr, Advertise: addr, Random: rand.New(rand.NewPCG(1, 2)),
		Owners: member.NewClusters(self.Cluster, "", nil, now), Room: member.NewRoom(authority.DefaultQuota.Nodes),
	}
}

// signing returns the configuration of a node that has its cluster's root, and believes the pinned clusters.
func signing(c Config, pins authority.Pins) Config {
	c.Authority = &trust.Config{Root: root(string(c.Self.Cluster)), Node: *seeded("key of " + c.Self.String()), Pins: pins}
	c.Proves = true
	c.Owners.SetPinned(pins != nil)
	return c
}

var root, seeded, pinned, placed = fake.Root, fake.Key, fake.Pins, fake.Placed

// entry is a record of an origin, written at a time.
func entry(t *testing.T, o clustermesh.Origin, c clustermesh.Content, now time.Time) replica.Entry {
	t.Helper()
	epoch := uint64(now.UnixNano())
	if o.Node == "" {
		epoch = uint64(now.UnixMilli())
	}
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: epoch, Version: 1}, Content: c})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// hasProblem reports whether a Problem has all the parts.
func hasProblem(n *Node, now time.Time, parts ...string) bool {
	return slices.ContainsFunc(n.Problems(now), func(p clustermesh.Problem) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(p.String(), part) })
	})
}
