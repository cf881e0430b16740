package scale

import (
	"fmt"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/testutil"
)

// Two daemons of the other cluster make straitd hear of all its nodes.
func TestRemoteNodesAreHeardOf(t *testing.T) {
	const peers = 600
	m := &measurement{job: job{Dir: t.TempDir(), Peers: peers}, keys: gossipkey.Ring{{}}, log: testutil.Logger(t).With("remote", true)}
	own, err := gossip.New(gossip.Config{
		Self: clustermesh.Origin{Cluster: "c1", Node: clustermesh.NodeName(nodeName(0))}, UID: "uid-of-c1", Bind: gossipOf(0), Keys: m.keys,
		Log: testutil.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(g *gossip.Gossip) {
		done := make(chan error, 1)
		go func() { done <- g.Run(t.Context()) }()
		t.Cleanup(func() { <-done })
	}
	run(own)
	for _, part := range [][2]int{{0, fewPeers}, {fewPeers, peers}} {
		g, err := m.remote(part[0], part[1])
		if err != nil {
			t.Fatal(err)
		}
		run(g)
		if part[0] == 0 {
			if err := lead(t.Context(), g, peers); err != nil {
				t.Fatal(err)
			}
		}
		testutil.Eventually(t, 30*time.Second, func() error {
			if n := own.State().Records.Len(); n != part[1]+1 { // and one of the cluster
				return fmt.Errorf("%d records, want %d", n, part[1]+1)
			}
			return nil
		})
	}
}
