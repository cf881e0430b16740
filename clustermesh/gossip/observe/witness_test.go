package observe

import (
	"fmt"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// TestWhoClaims: a death is claimed by the nodes of its own cluster. If that has just two, a few nodes
// of other clusters claim it too, and they are chosen alike everywhere.
func TestWhoClaims(t *testing.T) {
	cluster := func(name string, n int) (out []clustermesh.Origin) {
		for i := range n {
			out = append(out, node(name, fmt.Sprint("n", i)))
		}
		return out
	}
	for _, c := range []struct {
		cluster string
		nodes   int
		want    int // of the 20 nodes of cluster c
	}{
		{"a", 1, 0}, {"a", 2, remoteWitnesses}, {"a", 3, 0}, {"a", 100, 0}, {"c", 20, 19},
	} {
		witnesses := cluster("c", 20)
		known := records{}
		for _, o := range append(cluster(c.cluster, c.nodes), witnesses...) {
			known = known.With(o, clustermesh.Record{Origin: o})
		}
		silent, claims := node(c.cluster, "n0"), 0
		for _, self := range witnesses {
			alive := clustermesh.ByOrigin[bool]{}
			for _, o := range witnesses {
				if o != self && o != silent {
					alive = alive.With(o, true)
				}
			}
			if self != silent && counting(self, alive, known)(silent) {
				claims++
			}
		}
		if claims != c.want {
			t.Errorf("%d claims for a node of cluster %s of %d nodes, want %d", claims, c.cluster, c.nodes, c.want)
		}
	}
}

// TestClaimsThatDoNotCountAreLifted: those that an older build made, and those about a cluster that got
// a third node.
func TestClaimsThatDoNotCountAreLifted(t *testing.T) {
	n2, b1, b2 := node("a", "n2"), node("b", "n1"), node("b", "n2")
	w := newWatch(t, n2, b1, b2)
	w.hear(member.ID{Origin: n2, Boot: 5})
	w.hear(member.ID{Origin: b1, Boot: 5})
	w.hear(member.ID{Origin: b2, Boot: 5})
	w.Leave(member.ID{Origin: b1, Boot: 5}, w.now)
	for range 4 {
		w.probe(b1, Silent)
	}
	w.want(b1, clustermesh.Silent, true)
	b3 := node("b", "n3")
	w.records = w.records.With(b3, clustermesh.Record{Origin: b3, Stamp: clustermesh.Stamp{Epoch: 5}})
	w.want(b1, clustermesh.Silent, false)
}
