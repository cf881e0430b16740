package replica

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// TestMembersChange: however the members change, and whatever is drawn in between, the neighbours
// are those that the topology chooses of the members, and the Outputs say what changed of them.
func TestMembersChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.SampledFrom([]topology.Topology{topology.FullMesh{}, ring{}, relays{}, topology.Relays{}}).Draw(t, "topology")
		r := New(Config{Self: simOrigin(0), Topology: top}, nil)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		streams := map[Peer]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			var members []clustermesh.Origin
			for n, i := rng.IntN(3*drawn), 0; i < n; i++ { // some twice, and out of order
				members = append(members, simOrigin(rng.IntN(2*drawn)))
			}
			out := r.SetMembers(topology.View{Members: members})
			for p, is := range out.Neighbours {
				if is == streams[p] {
					t.Fatalf("%s: a stream now: %v, before: %v", p, is, streams[p])
				}
				if streams[p] = is; !is {
					delete(streams, p)
				}
			}
			r.Tick(rng)
			slices.SortFunc(members, clustermesh.Origin.Compare)
			members = slices.DeleteFunc(slices.Compact(members), func(o clustermesh.Origin) bool { return o == simOrigin(0) })
			want := top.Ways(topology.View{Self: simOrigin(0), Members: members}).Neighbours()
			got := r.Neighbours()
			slices.SortFunc(got, clustermesh.Origin.Compare)
			slices.SortFunc(want, clustermesh.Origin.Compare)
			if !slices.Equal(got, want) || !slices.Equal(slices.SortedFunc(maps.Keys(streams), clustermesh.Origin.Compare), want) {
				t.Fatalf("neighbours %v, with streams to %v; want %v", got, streams, want)
			}
			if !slices.Equal(slices.SortedFunc(maps.Keys(r.members), clustermesh.Origin.Compare), members) {
				t.Fatalf("members %v, want %v", r.members, members)
			}
		}
	})
}

// TestDraw: each neighbour comes first about as often as any other.
func TestDraw(t *testing.T) {
	const peers, draws = 3 * drawn, 30_000
	var n neighbours
	for i := range peers {
		n.add(simOrigin(i))
	}
	rng, first := rand.New(rand.NewPCG(1, 1)), map[Peer]int{}
	for range draws {
		n.draw(rng)
		first[n.list[0]]++
		first[n.list[drawn-1]]++
	}
	for i := range peers {
		if got, want := first[simOrigin(i)], 2*draws/peers; got < want*3/4 || got > want*5/4 {
			t.Errorf("%s came first %d times, want about %d", simOrigin(i), got, want)
		}
	}
}
