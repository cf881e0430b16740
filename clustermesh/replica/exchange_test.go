package replica

import (
	"fmt"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// pair is two replicas that know each other, each with a record of its own.
func pair(t *testing.T) *sim {
	s := newSim(t, []clustermesh.Origin{simOrigin(0), simOrigin(3)}, 1) // of one cluster
	s.settle(1)
	for i := range s.nodes {
		s.do(i, s.nodes[i].Publish(content(s.peers[i], i+1)))
	}
	s.flying = nil // lost, all of it
	return s
}

// TestOneExchangeRepairsBothWays: whichever of two asks, both hold the same afterwards.
func TestOneExchangeRepairsBothWays(t *testing.T) {
	s := pair(t)
	s.do(0, s.nodes[0].Connected(s.peers[1], false))
	for len(s.flying) > 0 {
		s.deliver(0, false, false)
	}
	s.sameEverywhere(map[clustermesh.Origin]clustermesh.Content{
		s.peers[0]: content(s.peers[0], 1), s.peers[1]: content(s.peers[1], 2),
	})
}

// TestAskedOnce: an announcement that comes by two ways is asked for once, and again after a tick if
// the answer was lost.
func TestAskedOnce(t *testing.T) {
	s := pair(t)
	announce := &Announce{Offers: offersOf([]Entry{s.nodes[0].entries[s.peers[0]]})}
	wants := func() (n int) {
		for _, e := range s.nodes[1].Receive(s.peers[0], announce).Send {
			if e.Message.Kind() == KindWant {
				n++
			}
		}
		return n
	}
	if n := wants(); n != 1 {
		t.Fatalf("asked %d times for what is new", n)
	}
	if n := wants(); n != 0 {
		t.Errorf("asked again %d times while the answer is on its way", n)
	}
	s.nodes[1].Tick(s.rng)
	if n := wants(); n != 1 {
		t.Errorf("asked %d times after a tick", n)
	}
}

// TestNoEcho: what a node wrote is not pushed back to it, by whomever it came.
func TestNoEcho(t *testing.T) {
	writer, by, next := simOrigin(0), simOrigin(3), simOrigin(6)
	r := New(Config{Self: simOrigin(9)}, nil)
	r.SetMembers(topology.View{Members: []Peer{writer, by, next}})
	out := r.Receive(by, &Snapshot{Entries: []Entry{mustEntry(t, clustermesh.Record{Origin: writer, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: content(writer, 1)})}})
	if len(out.Send) != 1 || out.Send[0].To != next {
		t.Errorf("sent %+v, want it sent to %s alone", out.Send, next)
	}
}

// TestPushAfterRepair: what was asked for is announced further, since most have it; what is pushed later
// is pushed on again.
func TestPushAfterRepair(t *testing.T) {
	writer, middle, last := simOrigin(0), simOrigin(1), simOrigin(2)
	r := New(Config{Self: middle, Epoch: 1}, nil)
	r.SetMembers(topology.View{Members: []Peer{writer, last}})
	kinds := func(version uint64) (out []Kind) {
		e := mustEntry(t, clustermesh.Record{Origin: writer, Stamp: clustermesh.Stamp{Epoch: 1, Version: version}, Content: content(writer, int(version))})
		for _, env := range r.Receive(writer, &Snapshot{Entries: []Entry{e}}).Send {
			if env.To != last {
				t.Errorf("sent %T back to %s", env.Message, env.To)
			}
			out = append(out, env.Message.Kind())
		}
		return out
	}
	r.Receive(writer, &Announce{Offers: []Offer{{Origin: writer, Version: Version{Epoch: 1, Count: 1, Sum: 1}}}})
	if got := kinds(1); len(got) != 1 || got[0] != KindAnnounce {
		t.Errorf("repaired news was passed on as %v", got)
	}
	if got := kinds(2); len(got) != 1 || got[0] != KindSnapshot {
		t.Errorf("pushed news was passed on as %v", got)
	}
}

// TestJoinIsCheap: who comes without anything, and meets all others at once, gets everything about once.
func TestJoinIsCheap(t *testing.T) {
	var origins []clustermesh.Origin
	for i := range 11 {
		origins = append(origins, simOrigin(i))
	}
	s := newSim(t, origins, 1)
	truth, all := map[clustermesh.Origin]clustermesh.Content{}, 0
	for i, o := range origins {
		c := content(o, i)
		for n := range 1000 {
			e := c.Endpoints[0]
			e.Pod = fmt.Sprintf("pod-of-a-large-node-%d", n)
			c.Endpoints = append(c.Endpoints, e)
		}
		truth[o] = c
		s.do(i, s.nodes[i].Publish(c))
		all += s.nodes[i].entries[o].size
	}
	s.settle(20)
	s.sameEverywhere(truth)

	last := len(origins) - 1
	s.start(last, nil, 2000)
	s.do(last, s.nodes[last].Publish(truth[origins[last]]))
	for i := range last {
		s.do(i, s.nodes[i].SetMembers(topology.View{Members: origins[:last]}))
		s.do(i, s.nodes[i].SetMembers(topology.View{Members: origins}))
	}
	came := 0
	for len(s.flying) > 0 {
		if s.flying[0].to == last {
			came += len(s.flying[0].bytes)
		}
		s.deliver(0, false, false)
	}
	t.Logf("%d bytes came of %d", came, all)
	if came > 2*all {
		t.Errorf("%d bytes came, and there are %d", came, all)
	}
	if s.settle(sureTicks); !s.nodes[last].Synced() {
		t.Error("not synced")
	}
	s.sameEverywhere(truth)
}
