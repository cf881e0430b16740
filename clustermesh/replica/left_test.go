package replica

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

var (
	home   = clustermesh.Origin{Cluster: "c"}
	abroad = clustermesh.Origin{Cluster: "d", Node: "n0"}
)

// clusterOf is a sim of some nodes of one cluster and one of another, which have been up for long and hold all of each other.
func clusterOf(t testing.TB, nodes int, seed uint64) *sim {
	var origins []clustermesh.Origin
	for i := range nodes {
		origins = append(origins, clustermesh.Origin{Cluster: home.Cluster, Node: clustermesh.NodeName(fmt.Sprint("n", i))})
	}
	s := newSim(t, append(origins, abroad), seed)
	for i, o := range s.peers {
		s.do(i, s.nodes[i].Publish(content(o, i)))
	}
	s.settle(leftGrace + 1)
	return s
}

// meet says to all who is heard.
func (s *sim) meet() {
	var up []Peer
	for i, p := range s.peers {
		if !s.down[i] {
			up = append(up, p)
		}
	}
	for i, r := range s.nodes {
		if !s.down[i] {
			s.do(i, r.SetMembers(topology.View{Members: up}))
		}
	}
}

func (s *sim) stop(i int) {
	s.down[i] = true
	s.flying = slices.DeleteFunc(s.flying, func(f flight) bool { return f.to == i || f.from == i })
	s.meet()
}

// list is a leader's word on which Nodes there are.
func (s *sim) list(leader int, nodes ...int) {
	var c clustermesh.Content
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, s.peers[n].Node)
	}
	slices.Sort(c.Nodes)
	s.do(leader, s.nodes[leader].PublishCluster(c, s.clock))
}

// held checks of whom all that are up hold records, and that they know to agree.
func (s *sim) held(want ...int) {
	s.t.Helper()
	for i, r := range s.nodes {
		for n, o := range s.peers {
			if _, ok := r.Record(o); !s.down[i] && ok != slices.Contains(want, n) {
				s.t.Errorf("node %d holds %s: %v", i, o, ok)
			}
		}
		for c, d := range r.digests {
			if !s.down[i] && d != s.nodes[0].digests[c] {
				s.t.Errorf("digests of nodes 0 and %d differ in %s", i, c)
			}
		}
	}
}

// A node that was taken out of the cluster is forgotten by all, once its daemon is not heard; a newborn that the leader
// does not list yet is not.
func TestLeftIsDropped(t *testing.T) {
	s := clusterOf(t, 4, 1)
	s.list(0, 0, 1, 2)
	s.settle(5)
	s.held(0, 1, 2, 3, 4)
	s.stop(3)
	s.settle(2)
	s.held(0, 1, 2, 4)
	before := s.sent
	s.settle(1)
	if got := s.sent - before; got != 8 {
		t.Errorf("%d messages in a tick of four that agree, not 8", got)
	}
}

// Nothing is dropped because the cluster says nothing of it.
func TestUnlistedIsNotLeft(t *testing.T) {
	s := clusterOf(t, 3, 1)
	s.stop(2)
	s.settle(20)
	s.held(0, 1, 2, 3)
	s.do(0, s.nodes[0].PublishCluster(content(home, 9), s.clock))
	s.settle(20)
	s.held(0, 1, 2, 3)
}

// A node never drops its own record, though it hears no other and is not listed.
func TestOwnIsNotLeft(t *testing.T) {
	s := clusterOf(t, 3, 1)
	s.list(0, 0, 1)
	s.settle(2)
	s.do(2, s.nodes[2].SetMembers(topology.View{}))
	s.settle(1)
	if _, ok := s.nodes[2].Record(s.peers[2]); !ok {
		t.Error("dropped")
	}
}

// Who was away while the node left holds its record still; no other takes it back.
func TestLeftDoesNotComeBack(t *testing.T) {
	s := clusterOf(t, 4, 1)
	s.stop(3)
	s.side[abroadIndex(s)] = 1
	s.list(0, 0, 1, 2)
	for range 3 {
		for i := range s.nodes[:3] {
			s.do(i, s.nodes[i].Tick(s.rng))
		}
		for len(s.flying) > 0 {
			s.deliver(0, false, false)
		}
	}
	for _, r := range s.nodes[:3] {
		if _, ok := r.Record(s.peers[3]); ok {
			t.Fatal("held by one that knows")
		}
		if _, ok := s.nodes[abroadIndex(s)].Record(s.peers[3]); !ok {
			t.Fatal("dropped by one that cannot know")
		}
	}
	// It is given to one that knows.
	old := s.nodes[abroadIndex(s)].entries[s.peers[3]]
	if out := s.nodes[1].Receive(abroad, &Snapshot{Entries: []Entry{old}}); len(out.Changed)+len(out.Send)+len(out.Problems) > 0 {
		t.Errorf("of a record of a node that left came %+v", out)
	}
	if out := s.nodes[1].Receive(abroad, &Announce{Offers: offersOf([]Entry{old})}); len(out.Send) > 0 {
		t.Errorf("it is asked for: %+v", out)
	}
	s.settle(4)
	s.held(0, 1, 2, 4)
}

func abroadIndex(s *sim) int { return len(s.peers) - 1 }

// A node that returns is let in: at once when its daemon is heard, though not for long, and soon when it is listed
// again.
func TestLeftReturns(t *testing.T) {
	for _, way := range []string{"heard", "listed", "both"} {
		t.Run(way, func(t *testing.T) {
			s := clusterOf(t, 4, 1)
			s.list(0, 0, 1, 2)
			s.stop(3)
			s.settle(2)
			s.held(0, 1, 2, 4)
			if way != "heard" {
				s.list(0, 0, 1, 2, 3)
				s.settle(1)
			}
			if way != "listed" {
				delete(s.down, 3)
				s.meet()
				s.settle(1)
			} else {
				// One holds it after all: it was away, or heard it for a moment.
				e := s.nodes[3].entries[s.peers[3]]
				s.nodes[1].put(e, e.Record)
				s.settle(6)
			}
			s.held(0, 1, 2, 3, 4)
		})
	}
}

// What an earlier life kept is given some time to be heard before it counts.
func TestKeptIsNotLeftAtOnce(t *testing.T) {
	s := clusterOf(t, 3, 1)
	s.list(0, 0, 1)
	s.settle(2)
	r := New(Config{Self: s.peers[0], Epoch: 9}, s.nodes[0].Entries())
	for range leftGrace {
		r.Tick(s.rng)
	}
	if _, ok := r.Record(s.peers[2]); !ok {
		t.Fatal("a newborn was dropped at the start, before it could be heard")
	}
	r.SetMembers(topology.View{Members: s.peers[1:2]})
	if out := r.Tick(s.rng); !slices.Equal(out.Changed, s.peers[2:3]) {
		t.Errorf("changed %v", out.Changed)
	}
	if slices.ContainsFunc(r.Entries(), func(e Entry) bool { return e.Record.Origin == s.peers[2] }) {
		t.Error("it is kept for the next life")
	}
}

// Whatever happens to nodes, lists and the network: in the end all hold the records of those that are listed and heard,
// and of none that is not listed.
func TestLeftConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const nodes = 5
		s := clusterOf(t, nodes, rapid.Uint64().Draw(rt, "seed"))
		listed := map[int]bool{0: true}
		count := 100
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			i := rapid.IntRange(1, nodes-1).Draw(rt, "node") // the leader stays
			switch rapid.SampledFrom([]string{"stop", "start", "list", "unlist", "publish", "part", "heal", "tick", "lose", "deliver", "deliver"}).Draw(rt, "step") {
			case "stop":
				s.stop(i)
			case "start":
				delete(s.down, i)
				s.meet()
			case "list", "unlist":
				listed[i] = !listed[i]
				var all []int
				for n, is := range listed {
					if is {
						all = append(all, n)
					}
				}
				s.list(0, all...)
			case "publish":
				if count++; !s.down[i] {
					s.do(i, s.nodes[i].Publish(content(s.peers[i], count)))
				}
			case "part":
				s.side[i] = rapid.IntRange(0, 2).Draw(rt, "side")
			case "heal":
				clear(s.side)
			case "tick":
				if !s.down[i] {
					s.do(i, s.nodes[i].Tick(s.rng))
				}
			case "lose":
				s.flying = nil
			case "deliver":
				if len(s.flying) > 0 {
					s.deliver(rapid.IntRange(0, len(s.flying)-1).Draw(rt, "message"), false, false)
				}
			}
		}
		s.settle(newGrace + 30)
		for i, r := range s.nodes {
			for n, o := range s.peers {
				_, ok := r.Record(o)
				up, left := !s.down[n], n < nodes && len(listed) > 1 && !listed[n] && n != i
				if !s.down[i] && (up && !left && !ok || left && ok) {
					rt.Fatalf("node %d holds %s: %v; it is up: %v, listed: %v", i, o, ok, up, listed[n])
				}
			}
			for c := range r.digests {
				if !s.down[i] && r.digestOf(c) != s.nodes[0].digestOf(c) {
					rt.Fatalf("digests of nodes 0 and %d differ in %s", i, c)
				}
			}
		}
	})
}

// hear says which nodes a node hears.
func (s *sim) hear(i int, nodes ...int) {
	var up []Peer
	for _, n := range nodes {
		up = append(up, s.peers[n])
	}
	s.do(i, s.nodes[i].SetMembers(topology.View{Members: up}))
}

// A node that is not listed, and that only half of the others hear, is dropped by all in the end, though
// those who hear it change again and again, and it does not see that it has left. If it does, no node sends anything
// because of it.
func TestHeardByHalfSettles(t *testing.T) {
	for _, flaps := range []bool{false, true} {
		t.Run(fmt.Sprint("flaps ", flaps), func(t *testing.T) {
			s := clusterOf(t, 4, 1)
			s.list(0, 0, 1, 2)
			hearing := func(tick int) {
				if flaps {
					clear(s.nodes[3].absent)
				}
				for i := range 3 {
					if odd := tick/7%2 == 1; (i > 0) == (flaps && odd) {
						s.hear(i, 0, 1, 2, 3, 4)
					} else {
						s.hear(i, 0, 1, 2, 4)
					}
				}
			}
			hearing(0)
			s.settle(5)
			if _, ok := s.nodes[0].Record(s.peers[3]); !ok {
				t.Error("dropped while it is new by one that hears it")
			}
			for tick := range newGrace + 5 {
				hearing(tick)
				s.settle(1)
			}
			for tick := range 3 * newGrace {
				for i, r := range s.nodes {
					if _, ok := r.Record(s.peers[3]); ok != (i == 3) {
						t.Fatalf("%d ticks later, node %d holds it: %v", tick, i, ok)
					}
				}
				if flaps {
					hearing(tick)
				}
				before := s.sent
				if s.settle(1); !flaps && s.sent-before > 10 {
					t.Fatalf("%d messages in a tick of five that agree, not 10", s.sent-before)
				}
			}
			s.list(0, 0, 1, 2, 3)
			s.settle(5)
			s.held(0, 1, 2, 3, 4)
			s.meet()
			s.list(0, 0, 1, 2)
			s.settle(5) // it counts as new again: the leader may be wrong
			s.held(0, 1, 2, 3, 4)
		})
	}
}

// An attacker that invents nodes makes a replica remember no more than so many of them; those that are listed are not
// concerned.
func TestUnlistedAreBounded(t *testing.T) {
	s := clusterOf(t, 4, 1)
	s.list(0, 0, 1, 2)
	s.settle(1)
	r := s.nodes[0]
	for i := range 2 * maxUnlisted {
		r.sees(clustermesh.Origin{Cluster: home.Cluster, Node: clustermesh.NodeName(fmt.Sprint("invented", i))})
	}
	if len(r.absent) != maxUnlisted {
		t.Errorf("%d are remembered", len(r.absent))
	}
	if invented := (clustermesh.Origin{Cluster: home.Cluster, Node: "one-more"}); !r.waited(invented) || r.left(s.peers[3]) || r.left(s.peers[1]) {
		t.Error("one more is waited for; or one that was there before, or is listed, has left")
	}
	r.ticks += forgetAfter - 5
	s.settle(10)
	if n := len(r.absent); n != 1 { // the one that is a member still
		t.Errorf("%d are remembered after a while", n)
	}
}
