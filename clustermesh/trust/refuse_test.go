package trust

import (
	"fmt"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// TestInventedClusters: without pins, a holder of the gossip key can invent clusters and nodes, but not
// without bound; those that are known go on.
func TestInventedClusters(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	g := New(nil, self)
	r := replica.New(replica.Config{Self: self, Admit: func(by replica.Peer, e replica.Entry) (clustermesh.Record, clustermesh.Problem, bool) {
		return g.Admit(by, e, now)
	}}, nil)
	g.records = r
	say := func(o clustermesh.Origin, version uint64) (problems []clustermesh.Problem) {
		e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: version}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Receive(self, &replica.Snapshot{Entries: []replica.Entry{e}}).Problems
	}
	objects := map[string]bool{}
	for n := range maxClusters + 100 {
		for _, p := range say(node(fmt.Sprint("c", n), "n1"), 1) {
			objects[p.Object] = true
		}
	}
	if _, n := r.Count("c0"); n != maxClusters || !objects["clusterset"] || len(objects) != 1 {
		t.Errorf("%d clusters are held, and the problems are of %v", n, objects)
	}
	if p := say(node("c0", "n1"), 2); len(p) > 0 {
		t.Errorf("a cluster that is known is refused: %v", p)
	}
	most := authority.DefaultQuota.Nodes
	for n := range most + 100 {
		say(node("c0", fmt.Sprint("m", n)), 1)
	}
	if c, _ := r.Count("c0"); c.Nodes != most {
		t.Errorf("%d nodes of a cluster are held", c.Nodes)
	}
}

// TestInventedClustersAreBounded: an attacker that invents clusters fills neither memory nor the list of members.
func TestInventedClustersAreBounded(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	g := New(&Config{Pins: pinned("west")}, self)
	invent := func(n int) {
		e, err := replica.NewEntry(clustermesh.Record{Origin: node(fmt.Sprint("c", n), "n1"), Stamp: clustermesh.Stamp{Epoch: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, p, ok := g.Admit(self, e, now); ok || p.Code != problem.ClusterNotPinned {
			t.Fatalf("admitted: %v, %v", ok, p)
		}
	}
	for n := range 10 * maxRefusals {
		invent(n)
	}
	if len(g.refusals) != maxRefusals || g.refused["not_pinned"] != 10*maxRefusals {
		t.Errorf("%d examples, %v", len(g.refusals), g.refused)
	}
	now = now.Add(exampleLife + time.Second)
	invent(0)
	if len(g.refusals) != 1 {
		t.Errorf("%d examples after a while", len(g.refusals))
	}
}
