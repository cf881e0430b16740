package replica

import (
	"fmt"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// ring makes the next and the last in the order of names neighbours.
type ring struct{ topology.FullMesh }

func (ring) Ways(v topology.View) topology.Ways {
	self, members := v.Self, v.Members
	all := slices.SortedFunc(slices.Values(append(slices.Clone(members), self)), clustermesh.Origin.Compare)
	i, n := slices.Index(all, self), len(all)
	out := []clustermesh.Origin{all[(i+1)%n], all[(i+n-1)%n]}
	return topology.Flood(slices.DeleteFunc(slices.Compact(out), func(o clustermesh.Origin) bool { return o == self }))
}

// relays joins each node to the lowest name of its cluster, and those to each other.
type relays struct{ topology.FullMesh }

func (relays) Ways(v topology.View) topology.Ways {
	self, members := v.Self, v.Members
	var out topology.Flood
	relay := map[clustermesh.ClusterName]clustermesh.Origin{self.Cluster: self}
	for _, o := range members {
		if r, ok := relay[o.Cluster]; !ok || o.Compare(r) < 0 {
			relay[o.Cluster] = o
		}
	}
	for _, o := range members {
		is := relay[o.Cluster] == o
		if o.Cluster == self.Cluster && is || relay[self.Cluster] == self && (is || o.Cluster == self.Cluster) {
			out = append(out, o)
		}
	}
	return out
}

// topologies are today's and two others, to show that nothing but the value knows which one it is.
var topologies = map[string]topology.Topology{"full mesh": topology.FullMesh{}, "ring": ring{}, "relays": relays{}, "ways of relays": topology.Relays{}}

func TestTopologies(t *testing.T) {
	for name, top := range topologies {
		for n := 1; n <= 7; n++ {
			var all []clustermesh.Origin
			for i := range n {
				all = append(all, simOrigin(i))
			}
			neighbours := map[clustermesh.Origin][]clustermesh.Origin{}
			for i, o := range all {
				others := slices.Delete(slices.Clone(all), i, i+1)
				neighbours[o] = top.Ways(topology.View{Self: o, Members: others}).Neighbours()
				slices.Reverse(others)
				again := top.Ways(topology.View{Self: o, Members: others}).Neighbours()
				if len(again) != len(neighbours[o]) || slices.ContainsFunc(again, func(p Peer) bool { return !slices.Contains(neighbours[o], p) }) {
					t.Errorf("%s of %d: of another order %s has other neighbours: %v, %v", name, n, o, neighbours[o], again)
				}
			}
			reached := map[clustermesh.Origin]bool{}
			for next := all[:1]; len(next) > 0; next = next[1:] {
				if o := next[0]; !reached[o] {
					reached[o] = true
					next = append(next, neighbours[o]...)
				}
			}
			if len(reached) != n {
				t.Errorf("%s of %d: %d are reached from the first", name, n, len(reached))
			}
			for o, ns := range neighbours {
				for _, p := range ns {
					if p == o || !slices.Contains(neighbours[p], o) {
						t.Errorf("%s of %d: %s has a stream to %s, which has none back", name, n, o, p)
					}
				}
			}
		}
	}
}

// TestNeighboursAlone: messages go to neighbours only, and still all hold what all say, through losses too.
func TestNeighboursAlone(t *testing.T) {
	for name, top := range topologies {
		t.Run(name, func(t *testing.T) {
			var origins []clustermesh.Origin
			for i := range 9 {
				origins = append(origins, simOrigin(i))
			}
			s := newSim(t, origins, 1)
			s.topology = top
			for i := range origins {
				s.start(i, nil, s.clock)
			}
			truth := map[clustermesh.Origin]clustermesh.Content{}
			for round := range 3 {
				for i, o := range origins {
					truth[o] = content(o, round*100+i)
					s.do(i, s.nodes[i].Publish(truth[o]))
				}
				for n := 0; n < len(s.flying); n++ {
					f := s.flying[n]
					if !slices.Contains(top.Ways(topology.View{Self: origins[f.from], Members: without(origins, f.from)}).Neighbours(), origins[f.to]) {
						t.Fatalf("%s sends to %s", origins[f.from], origins[f.to])
					}
				}
				s.flying = slices.DeleteFunc(s.flying, func(flight) bool { return s.rng.IntN(3) == 0 })
				s.settle(20)
				s.sameEverywhere(truth)
			}
		})
	}
}

// TestNeighboursFollowMembers: who joins or leaves changes the neighbours of those alone whom it
// concerns.
func TestNeighboursFollowMembers(t *testing.T) {
	self, next, last, other := simOrigin(0), simOrigin(3), simOrigin(6), simOrigin(1)
	for _, tc := range []struct {
		topology topology.Topology
		members  []clustermesh.Origin
		want     string
		streams  int
	}{
		{topology.FullMesh{}, nil, "[]", 0},
		{topology.FullMesh{}, []clustermesh.Origin{self, next, next, other}, "[c0/n3 c1/n1]", 2},
		{ring{}, []clustermesh.Origin{next, last, other}, "[c0/n3 c1/n1]", 2},
		{relays{}, []clustermesh.Origin{next, last, other, simOrigin(4)}, "[c0/n3 c0/n6 c1/n1]", 3},
	} {
		r := New(Config{Self: self, Topology: tc.topology}, nil)
		out := r.SetMembers(topology.View{Members: tc.members})
		if got := fmt.Sprint(slices.SortedFunc(slices.Values(r.Neighbours()), clustermesh.Origin.Compare)); got != tc.want || len(out.Neighbours) != tc.streams {
			t.Errorf("of %v: neighbours %s, %d new streams, want %s, %d", tc.members, got, len(out.Neighbours), tc.want, tc.streams)
		}
		if again := r.SetMembers(topology.View{Members: tc.members}); len(again.Neighbours) != 0 {
			t.Errorf("of %v: no change makes %d streams", tc.members, len(again.Neighbours))
		}
		if r.SetMembers(topology.View{}); len(r.Neighbours()) != 0 {
			t.Errorf("without members: neighbours %v", r.Neighbours())
		}
	}
}

// TestHeardThoughNoNeighbour: a node that its leader does not list has not left while its daemon is
// a member, whether there is a stream to it or not.
func TestHeardThoughNoNeighbour(t *testing.T) {
	s := clusterOf(t, 5, 1)
	s.topology = ring{}
	for i := range s.nodes {
		s.start(i, s.nodes[i].Entries(), s.clock+1)
	}
	s.settle(leftGrace + 1)
	s.list(0, 0, 1, 2, 3)
	s.settle(20)
	s.held(0, 1, 2, 3, 4, 5)
	s.stop(4)
	s.settle(20)
	s.held(0, 1, 2, 3, 5)
}

func without(all []clustermesh.Origin, i int) []clustermesh.Origin {
	return slices.Delete(slices.Clone(all), i, i+1)
}
