package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

// clusterset returns nodes of clusters of these sizes.
func clusterset(sizes ...int) (all []clustermesh.Origin) {
	for c, n := range sizes {
		for i := range n {
			all = append(all, clustermesh.Origin{Cluster: clustermesh.ClusterName(fmt.Sprintf("cluster-%d", c)), Node: clustermesh.NodeName(fmt.Sprintf("ip-10-%d-%d", c, i))})
		}
	}
	return all
}

// waysOf returns the ways of all members, who see each other.
func waysOf(all []clustermesh.Origin) map[clustermesh.Origin]relayWays {
	out := map[clustermesh.Origin]relayWays{}
	for _, o := range all {
		out[o] = relayWaysOf(View{Self: o, Members: all})
	}
	return out
}

// hop is one way of a record, or of an offer, which is taken by who lacks the record once no records travel.
type hop struct {
	from, to clustermesh.Origin
	offer    bool
}

// spread lets a record of a writer travel, and returns how many copies and offers each member got.
func spread(ways map[clustermesh.Origin]relayWays, writer clustermesh.Origin, dead map[clustermesh.Origin]bool) (records, offers map[clustermesh.Origin]int) {
	records, offers = map[clustermesh.Origin]int{}, map[clustermesh.Origin]int{}
	var news, offered []hop
	pass := func(at clustermesh.Origin, by hop) {
		w := ways[at]
		to := w.Spread(News{From: by.from, Writer: writer, Repaired: by.offer}, w.Neighbours())
		for _, p := range to.Records {
			news = append(news, hop{from: at, to: p})
		}
		for _, p := range slices.Concat(to.Offers, to.Hints) {
			offered = append(offered, hop{from: at, to: p, offer: true})
		}
	}
	held := map[clustermesh.Origin]bool{writer: true}
	pass(writer, hop{})
	for len(news)+len(offered) > 0 {
		from, count := &news, records
		if len(news) == 0 {
			from, count = &offered, offers
		}
		h := (*from)[0]
		*from = (*from)[1:]
		if dead[h.to] {
			continue
		}
		if count[h.to]++; !held[h.to] {
			held[h.to] = true
			pass(h.to, h)
		}
	}
	return records, offers
}

// TestRelayWays: both ends of a stream keep it, each record reaches everybody, a node gets it once and a second
// offer, and each other cluster gets two copies.
func TestRelayWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := clusterset(rapid.SliceOfN(rapid.IntRange(1, 70), 1, 6).Draw(t, "sizes")...)
		ways := waysOf(all)
		for o, w := range ways {
			for _, p := range w.Neighbours() {
				if !slices.Contains(ways[p].Neighbours(), o) {
					t.Fatalf("%s has a stream to %s, and that has none to it", o, p)
				}
			}
			if n := len(w.Neighbours()); !w.relay && n != 2 {
				t.Fatalf("%s has %d homes", o, n)
			}
		}
		writer := rapid.SampledFrom(all).Draw(t, "writer")
		records, offers := spread(ways, writer, nil)
		for _, o := range all {
			switch w := ways[o]; {
			case o == writer:
			case !w.relay && (records[o] != 1 || offers[o] != 1):
				t.Fatalf("%s got %d copies and %d offers of what %s wrote", o, records[o], offers[o], writer)
			case records[o] == 0 || records[o] > 5:
				t.Fatalf("%s got %d copies of what %s wrote", o, records[o], writer)
			}
		}
	})
}

// TestRelayDies: with one relay of each cluster dead and not noticed, whoever lives gets the record or an offer.
func TestRelayDies(t *testing.T) {
	all := clusterset(40, 80, 5, 3, 100, 1)
	ways := waysOf(all)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		dead := map[clustermesh.Origin]bool{}
		for _, o := range all {
			if w := ways[o]; w.relay && !slices.ContainsFunc(w.mates, func(p clustermesh.Origin) bool { return dead[p] }) && rng.IntN(3) == 0 {
				dead[o] = true
			}
		}
		writer := all[rng.IntN(len(all))]
		if dead[writer] {
			continue
		}
		records, offers := spread(ways, writer, dead)
		for _, o := range all {
			if o != writer && !dead[o] && records[o]+offers[o] == 0 {
				t.Fatalf("%s got nothing of what %s wrote; dead: %v", o, writer, dead)
			}
		}
	}
}

// TestRelaysOfThousands: with 10,000 nodes in 100 clusters, a node has two streams and a relay less than 250, and no
// relay has more than its share of nodes and a tenth. Who leaves changes few streams.
func TestRelaysOfThousands(t *testing.T) {
	sizes := slices.Repeat([]int{100}, 100)
	all := clusterset(sizes...)
	cluster := all[:100]
	less := slices.Concat(all[:50], all[51:])
	changed := 0
	for _, o := range cluster {
		if o == all[50] {
			continue
		}
		w := relayWaysOf(View{Self: o, Members: all})
		n := w.Neighbours()
		if most := map[bool]int{false: 2, true: 250}[w.relay]; len(n) > most {
			t.Errorf("%s has %d streams", o, len(n))
		}
		if len(w.first) > 21 || len(w.second) > 21 {
			t.Errorf("%s is the first home of %d nodes, and the second of %d", o, len(w.first), len(w.second))
		}
		after := relayWaysOf(View{Self: o, Members: less}).Neighbours()
		for _, p := range after {
			if !slices.Contains(n, p) {
				changed++
			}
		}
	}
	t.Logf("%d streams are new in the cluster that a node leaves", changed)
	if changed > 20 {
		t.Errorf("%d streams are new because one node left", changed)
	}
}
