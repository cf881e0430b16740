package observe

import (
	"fmt"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// TestWhoClaims: a death is claimed by the nodes of its own cluster, of a large one by few. If it
// has just two, a few nodes of other clusters claim it too. They are chosen alike everywhere. While
// a daemon does not know that few decide, all claim.
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
		older   bool
		want    int // of the 20 nodes of cluster c
	}{
		{"a", 1, false, 0}, {"a", 2, false, remoteWitnesses}, {"a", 3, false, 0}, {"a", 100, false, 0}, {"c", 20, false, 9}, {"c", 20, true, 19},
	} {
		witnesses := cluster("c", 20)
		known := records{}
		for i, o := range append(cluster(c.cluster, c.nodes), witnesses...) {
			n := &clustermesh.Node{Name: o.Node, Speaks: clustermesh.SpeaksFew}
			if c.older && i == 5 {
				n.Speaks = 0
			}
			known = known.With(o, clustermesh.Record{Origin: o, Content: clustermesh.Content{Node: n}})
		}
		if c.older {
			o := node("d", "older")
			known = known.With(o, clustermesh.Record{Origin: o, Content: clustermesh.Content{Node: &clustermesh.Node{Name: o.Node}}})
		}
		silent, claims := node(c.cluster, "n0"), 0
		for _, self := range witnesses {
			alive := clustermesh.ByOrigin[bool]{}
			for _, o := range witnesses {
				if o != self && o != silent {
					alive = alive.With(o, true)
				}
			}
			contacts := NewContacts(self)
			contacts.Know(known)
			if self != silent && contacts.counting(alive, known, &home{Contacts: contacts, known: known})(silent) {
				claims++
			}
		}
		if claims != c.want {
			t.Errorf("%d claims for a node of cluster %s of %d nodes, want %d", claims, c.cluster, c.nodes, c.want)
		}
	}
}

// TestSmallerSideClaimsNothing: of many nodes, one that hears no more than half claims nothing,
// even while it has not found out yet that it does not hear the others.
func TestSmallerSideClaimsNothing(t *testing.T) {
	for _, c := range []struct {
		heard, stalled int
		want           bool
	}{{19, 0, true}, {10, 0, true}, {9, 0, false}, {3, 0, false}, {19, 9, true}, {19, 10, false}} {
		var all []clustermesh.Origin
		for i := range 20 {
			all = append(all, node("a", fmt.Sprint("n", i+1)))
		}
		w := newWatch(t, all...) // the first is this node
		for o := range w.records.All() {
			w.records = w.records.With(o, clustermesh.Record{Origin: o, Content: clustermesh.Content{Node: &clustermesh.Node{Name: o.Node, Speaks: clustermesh.SpeaksFew}}})
		}
		w.Know(w.records)
		frame := func(o clustermesh.Origin) { w.Frame(member.ID{Origin: o, Boot: 5}, w.now) }
		for _, o := range all[1 : c.heard+1] {
			w.hear(member.ID{Origin: o, Boot: 5})
			w.Stream(member.ID{Origin: o, Boot: 5}, +1, w.now)
			frame(o)
		}
		w.now = w.now.Add(2 * stalled)
		for _, o := range all[c.stalled+1 : c.heard+1] {
			frame(o)
		}
		if got := (&home{Contacts: w.Contacts, known: w.records, now: w.now}).hearsEnough(all[19]); got != c.want {
			t.Errorf("hears %d of 19 others, %d of them no more, and may claim: %v", c.heard, c.stalled, got)
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
