package replica

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

// TestConvergence lets anything happen to replicas and their network. Whatever it was, once the network
// is whole again all hold what the writers said last; on the way no record is lost or goes back.
func TestConvergence(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 7).Draw(rt, "nodes")
		var origins []clustermesh.Origin
		for i := range n {
			origins = append(origins, simOrigin(i))
		}
		s := newSim(t, origins, rapid.Uint64().Draw(rt, "seed"))
		truth := map[clustermesh.Origin]clustermesh.Content{}
		count := 0
		node := func() int { return rapid.IntRange(0, n-1).Draw(rt, "node") }
		publish := func(i int) {
			count++
			truth[origins[i]] = content(origins[i], count)
			s.do(i, s.nodes[i].Publish(truth[origins[i]]))
		}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"publish", "publish", "cluster", "deliver", "deliver", "deliver", "deliver",
				"drop", "repeat", "tick", "part", "heal", "save", "restart"}).Draw(rt, "step") {
			case "publish":
				publish(node())
			case "cluster":
				// Any node may believe that it leads, at any time.
				i := node()
				count++
				s.do(i, s.nodes[i].PublishCluster(content(clustermesh.Origin{}, count), s.clock))
			case "deliver", "drop", "repeat":
				if len(s.flying) > 0 {
					at := rapid.IntRange(0, len(s.flying)-1).Draw(rt, "message")
					s.deliver(at, rapid.IntRange(0, 5).Draw(rt, "lost") == 0, rapid.IntRange(0, 5).Draw(rt, "again") == 0)
				}
			case "tick":
				i := node()
				s.do(i, s.nodes[i].Tick(s.rng))
			case "part":
				s.side[node()] = rapid.IntRange(0, 2).Draw(rt, "side")
			case "heal":
				clear(s.side)
			case "save":
				i := node()
				s.saved[i] = s.nodes[i].Entries()
			case "restart":
				// From a state as old as may be, with a clock that may be wrong.
				i := node()
				s.clock++
				s.start(i, s.saved[i], rapid.Uint64Range(1, s.clock).Draw(rt, "epoch"))
			}
		}
		// Every writer speaks in its present life, with the network whole; leaders give way to one.
		clear(s.side)
		for i := range origins {
			publish(i)
		}
		s.settle(120)
		for i, o := range origins {
			if c := (clustermesh.Origin{Cluster: o.Cluster}); i < 3 {
				count++
				truth[c] = content(c, count)
				s.do(i, s.nodes[i].PublishCluster(truth[c], s.clock))
			}
		}
		s.settle(40)
		s.sameEverywhere(truth)
		for i, r := range s.nodes {
			if !r.Synced() {
				t.Fatalf("node %d has completed no exchange", i)
			}
		}
	})
}

// TestDigestRepairs proves that a record arrives though every push and announcement of it was lost.
func TestDigestRepairs(t *testing.T) {
	s := newSim(t, []clustermesh.Origin{simOrigin(0), simOrigin(1), simOrigin(2)}, 1)
	s.settle(3)
	want := content(simOrigin(0), 1)
	s.do(0, s.nodes[0].Publish(want))
	s.flying = nil
	s.settle(8)
	s.sameEverywhere(map[clustermesh.Origin]clustermesh.Content{simOrigin(0): want})
}

// TestOneChangeIsCheap counts the messages of one change among many nodes: no flood, no echo.
func TestOneChangeIsCheap(t *testing.T) {
	const n = 100
	var origins []clustermesh.Origin
	for i := range n {
		origins = append(origins, simOrigin(i))
	}
	s := newSim(t, origins, 1)
	s.settle(6)
	s.sent = 0
	want := content(origins[7], 1)
	s.do(7, s.nodes[7].Publish(want))
	for len(s.flying) > 0 {
		s.deliver(s.rng.IntN(len(s.flying)), false, false)
	}
	s.sameEverywhere(map[clustermesh.Origin]clustermesh.Content{origins[7]: want})
	if limit := n * 9; s.sent > limit {
		t.Errorf("one change cost %d messages among %d nodes, more than %d", s.sent, n, limit)
	}
	t.Logf("%d messages for %d nodes", s.sent, n)
}

func TestPublish(t *testing.T) {
	self := simOrigin(0)
	r := New(Config{Self: self, Epoch: 5}, nil)
	if out := r.Publish(content(self, 1)); len(out.Changed) != 1 {
		t.Fatalf("first publication changed %v", out.Changed)
	}
	if out := r.Publish(content(self, 1)); len(out.Changed) != 0 {
		t.Errorf("identical content made a new version")
	}
	before := r.Records()
	copied := maps.Collect(before.All())
	r.Publish(content(self, 2))
	if got := r.Records().Get(self).Stamp; got != (clustermesh.Stamp{Epoch: 5, Version: 2}) {
		t.Errorf("stamp %s, want 5/2", got)
	}
	if !reflect.DeepEqual(maps.Collect(before.All()), copied) {
		t.Error("records that were given away have changed")
	}
	bad := content(self, 3)
	bad.Endpoints = append(slices.Clone(bad.Endpoints), bad.Endpoints[0])
	bad.Endpoints[0].Node = "another"
	for range 2 { // the second time it is nothing new
		r.Publish(bad)
		got := r.Records().Get(self)
		if got.Stamp.Version != 3 || !reflect.DeepEqual(got.Content.Endpoints, bad.Endpoints[1:]) || len(got.Problems) != 1 || got.Problems[0].Field != "node" {
			t.Errorf("an endpoint of another node: version %d, %+v", got.Stamp.Version, got)
		}
	}
}

func TestRestart(t *testing.T) {
	self := simOrigin(0)
	first := New(Config{Self: self, Epoch: 5}, nil)
	first.Publish(content(self, 1))
	held := first.Entries()

	// A clock that went back does not matter, and the old record stays until there is a new one.
	second := New(Config{Self: self, Epoch: 2}, held)
	if got := second.Records().Get(self); !sameContent(got.Content, content(self, 1)) {
		t.Errorf("after the restart: %+v", got)
	}
	second.Publish(content(self, 1))
	if got := second.Records().Get(self).Stamp; got != (clustermesh.Stamp{Epoch: 6, Version: 1}) {
		t.Errorf("stamp %s, want 6/1: a new life must show even if it says the same", got)
	}

	// Without its state a node takes its old record back from peers, until it publishes.
	third := New(Config{Self: self, Epoch: 2}, nil)
	out := third.Receive(simOrigin(1), &Snapshot{Entries: second.Entries()})
	if len(out.Changed) != 1 || third.Records().Get(self).Stamp.Epoch != 6 {
		t.Errorf("the own old record was not taken back: %+v", out)
	}
	third.Publish(content(self, 2))
	if got := third.Records().Get(self).Stamp.Epoch; got != 7 {
		t.Errorf("epoch %d, want 7", got)
	}
}

func TestClusterRecord(t *testing.T) {
	a, b := clustermesh.Origin{Cluster: "c", Node: "a"}, clustermesh.Origin{Cluster: "c", Node: "b"}
	c := clustermesh.Origin{Cluster: "c"}
	one, two := New(Config{Self: a, Epoch: 1}, nil), New(Config{Self: b, Epoch: 1}, nil)
	one.PublishCluster(content(c, 1), 100)
	one.PublishCluster(content(c, 2), 100)
	if got := one.Records().Get(c).Stamp; got != (clustermesh.Stamp{Epoch: 100, Version: 2}) {
		t.Fatalf("stamp %s, want 100/2", got)
	}
	two.Receive(a, &Snapshot{Entries: one.Entries()})
	if out := two.PublishCluster(content(c, 2), 200); len(out.Changed) != 0 {
		t.Error("identical content of a new leader made a new version")
	}
	two.PublishCluster(content(c, 3), 50) // its clock is behind
	if got := two.Records().Get(c).Stamp; got != (clustermesh.Stamp{Epoch: 101, Version: 1}) {
		t.Errorf("stamp %s, want 101/1", got)
	}
}

// TestTwoLeaders: two nodes that both believe that they lead do not fight at wire speed, whichever was
// elected first; and when one gives up, the other's word is in force soon.
func TestTwoLeaders(t *testing.T) {
	origins := []clustermesh.Origin{{Cluster: "c", Node: "a"}, {Cluster: "c", Node: "b"}, {Cluster: "c", Node: "d"}}
	c := clustermesh.Origin{Cluster: "c"}
	s := newSim(t, origins, 3)
	written := 0
	lead := func(i, n int, elected uint64) {
		out := s.nodes[i].PublishCluster(content(c, n), elected)
		written += len(out.Changed)
		s.do(i, out)
	}
	for range 1000 {
		lead(0, 1, 100)
		lead(1, 2, 200)
		s.settle(1)
	}
	if written < 10 || written > 100 {
		t.Errorf("%d versions were written in 1,000 ticks", written)
	}
	for range 40 {
		lead(0, 1, 100)
		s.settle(1)
	}
	s.sameEverywhere(map[clustermesh.Origin]clustermesh.Content{c: content(c, 1)})
}

// TestEqualStamps: two leaders of one epoch wrote different things under one stamp. All must end with the same.
func TestEqualStamps(t *testing.T) {
	origins := []clustermesh.Origin{{Cluster: "c", Node: "a"}, {Cluster: "c", Node: "b"}, {Cluster: "c", Node: "d"}}
	c := clustermesh.Origin{Cluster: "c"}
	s := newSim(t, origins, 3)
	s.nodes[0].PublishCluster(content(c, 1), 100)
	s.nodes[1].PublishCluster(content(c, 2), 100)
	s.settle(10)
	winner := s.nodes[2].Records().Get(c).Content
	s.sameEverywhere(map[clustermesh.Origin]clustermesh.Content{c: winner})
}

// TestTwoOfOneName: both daemons say so, and they do not fight at wire speed.
func TestTwoOfOneName(t *testing.T) {
	twin := simOrigin(0)
	s := newSim(t, []clustermesh.Origin{twin, simOrigin(1), twin, simOrigin(3)}, 1)
	s.do(0, s.nodes[0].Publish(content(twin, 1)))
	s.do(2, s.nodes[2].Publish(content(twin, 2)))
	s.settle(100)
	takeovers := s.nodes[0].writer.takeovers + s.nodes[2].writer.takeovers
	if takeovers < 3 || takeovers > 24 {
		t.Errorf("%d takeovers in 100 ticks", takeovers)
	}
	found := 0
	for _, p := range s.problems {
		if strings.Contains(p.Message, "two nodes with the same name") && strings.Contains(p.Object, twin.String()) {
			found++
		}
	}
	if found == 0 || found > takeovers {
		t.Errorf("%d problems for %d takeovers: %v", found, takeovers, s.problems)
	}
	for i, n := range map[int]int{0: 1, 2: 2} {
		if got := s.nodes[i].Records().Get(twin).Content; !sameContent(got, content(twin, n)) {
			t.Errorf("daemon %d took over what the other says", i)
		}
	}
}

func TestRejectedRecordDoesNotStopOthers(t *testing.T) {
	r := New(Config{Self: simOrigin(0), Epoch: 1}, nil)
	good, err := NewEntry(clustermesh.Record{Origin: simOrigin(1), Stamp: clustermesh.Stamp{Epoch: 1}, Content: content(simOrigin(1), 1)})
	if err != nil {
		t.Fatal(err)
	}
	bad := clustermesh.Record{Origin: simOrigin(2), Content: content(simOrigin(1), 1)}
	raw, err := encMode.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Encode(&Snapshot{Entries: []Entry{entry(bad, raw), good}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	out := r.Receive(simOrigin(1), m)
	if len(out.Changed) != 1 || len(out.Problems) != 1 || r.Records().Len() != 1 {
		t.Errorf("changed %v, problems %v", out.Changed, out.Problems)
	}
	// It is not asked for again.
	out = r.Receive(simOrigin(1), &Announce{Offers: offersOf([]Entry{entry(bad, raw)})})
	if len(out.Send) != 0 {
		t.Errorf("asked for a rejected record again: %v", out.Send)
	}
}

func BenchmarkReceiveChange(b *testing.B) {
	r := New(Config{Self: simOrigin(0), Epoch: 1}, nil)
	for i := range 10_000 {
		e, err := NewEntry(clustermesh.Record{Origin: simOrigin(i + 1), Stamp: clustermesh.Stamp{Epoch: 1}, Content: content(simOrigin(i+1), i)})
		if err != nil {
			b.Fatal(err)
		}
		r.Receive(simOrigin(1), &Snapshot{Entries: []Entry{e}})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := 0; b.Loop(); i++ {
		o := simOrigin(rng.IntN(10_000) + 1)
		e, _ := NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 2, Version: uint64(i)}, Content: content(o, i)})
		r.Receive(simOrigin(1), &Snapshot{Entries: []Entry{e}})
	}
}
