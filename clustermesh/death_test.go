package clustermesh_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

// node makes a record; silent lists the nodes that it calls silent ("b/n1").
func addNode(s *clustermesh.State, name string, contact clustermesh.Contact, silent ...string) {
	o := origin(name)
	r := clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 5}, Content: clustermesh.Content{Node: &clustermesh.Node{Name: o.Node}}}
	for _, x := range silent {
		r.Content.Silent = append(r.Content.Silent, clustermesh.Silence{Origin: origin(x), Epoch: 5})
	}
	s.Records = s.Records.With(o, r)
	s.Contacts = s.Contacts.With(o, contact)
}

func origin(name string) clustermesh.Origin {
	c, n, _ := strings.Cut(name, "/")
	return clustermesh.Origin{Cluster: clustermesh.ClusterName(c), Node: clustermesh.NodeName(n)}
}

func TestDead(t *testing.T) {
	const a1 = "a/n1"
	for _, tc := range []struct {
		name    string
		nodes   map[string][]string // node → whom it calls silent
		contact clustermesh.Contact
		epoch   uint64 // of a/n1; 5 unless set
		want    bool
	}{
		{"no node claims it", map[string][]string{"a/n2": nil, "b/n1": nil}, clustermesh.Held, 0, false},
		{"two nodes: the other alone is not enough", map[string][]string{"a/n2": {a1}, "b/n1": nil}, clustermesh.Silent, 0, false},
		{"two nodes: the other and a stranger", map[string][]string{"a/n2": {a1}, "b/n1": {a1}}, clustermesh.Silent, 0, true},
		{"strangers alone never: a cut is not a death", map[string][]string{"a/n2": nil, "b/n1": {a1}, "b/n2": {a1}, "c/n1": {a1}}, clustermesh.Silent, 0, false},
		{"a lone node is never dead", map[string][]string{"b/n1": {a1}, "b/n2": {a1}}, clustermesh.Silent, 0, false},
		{"three nodes: one of two others is no majority", map[string][]string{"a/n2": {a1}, "a/n3": nil, "b/n1": {a1}}, clustermesh.Silent, 0, false},
		{"three nodes: both others", map[string][]string{"a/n2": {a1}, "a/n3": {a1}}, clustermesh.Silent, 0, true},
		{"the smaller side of a split withdraws nothing", map[string][]string{"a/n2": {a1}, "a/n3": {a1}, "a/n4": nil, "a/n5": nil}, clustermesh.Silent, 0, false},
		{"whom I hear is not dead", map[string][]string{"a/n2": {a1}, "b/n1": {a1}}, clustermesh.Alive, 0, false},
		{"a machine that answers may be booting", map[string][]string{"a/n2": {a1}, "b/n1": {a1}}, clustermesh.Quiet, 0, true},
		{"a later life is not claimed", map[string][]string{"a/n2": {a1}, "b/n1": {a1}}, clustermesh.Held, 6, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
			addNode(&s, a1, tc.contact)
			if tc.epoch != 0 {
				r := s.Records.Get(origin(a1))
				r.Stamp.Epoch = tc.epoch
				s.Records = s.Records.With(origin(a1), r)
			}
			for n, silent := range tc.nodes {
				addNode(&s, n, clustermesh.Alive, silent...)
			}
			if got := s.Dead(origin(a1)); got != tc.want {
				home, away := s.Witnesses(origin(a1))
				t.Errorf("dead = %v, want %v (home %v, away %v)", got, tc.want, home, away)
			}
		})
	}
}

// Of two halves that cannot hear each other neither is ever judged dead, however many strangers agree:
// the property behind "no withdrawal in a partition", for all cluster sizes up to nine.
func TestNoHalfIsDead(t *testing.T) {
	for n := 2; n <= 9; n++ {
		s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("a/n%d", i))
		}
		// The whole cluster is cut off from b: only b complains.
		for _, x := range all {
			addNode(&s, x, clustermesh.Silent)
		}
		addNode(&s, "b/n1", clustermesh.Alive, all...)
		addNode(&s, "b/n2", clustermesh.Alive, all...)
		for _, x := range all {
			if s.Dead(origin(x)) {
				t.Errorf("%d nodes: %s is judged dead by a cut", n, x)
			}
		}
	}
}

// TestFewDecide: of many nodes, five of the nine that decide are enough; who is dead decides no
// more, so that the loss of many at once is decided in turns; and no five others are enough.
func TestFewDecide(t *testing.T) {
	const n = 40
	var all []clustermesh.Origin
	for i := range n {
		all = append(all, origin(fmt.Sprintf("a/n%d", i)))
	}
	claimed := func(dead []clustermesh.Origin, by func(x clustermesh.Origin, gone map[clustermesh.Origin]bool) []clustermesh.Origin, gone map[clustermesh.Origin]bool) map[clustermesh.Origin]bool {
		s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
		silent := map[clustermesh.Origin][]string{}
		for _, x := range dead {
			for _, w := range by(x, gone) {
				if !slices.Contains(dead, w) {
					silent[w] = append(silent[w], x.String())
				}
			}
		}
		for _, o := range all {
			addNode(&s, o.String(), clustermesh.Held, silent[o]...)
		}
		claimants := clustermesh.ByOrigin[bool]{}
		for o := range silent {
			claimants = claimants.With(o, true)
		}
		got := s.DeadOf("a")
		if again := s.DeadBy(claimants); !maps.Equal(got, again) {
			t.Fatalf("%v by all records, %v by those of who claims", got, again)
		}
		return got
	}
	deciders := func(x clustermesh.Origin, gone map[clustermesh.Origin]bool) []clustermesh.Origin {
		return clustermesh.Deciders(all, x, gone)
	}
	some := func(count int) func(clustermesh.Origin, map[clustermesh.Origin]bool) []clustermesh.Origin {
		return func(x clustermesh.Origin, gone map[clustermesh.Origin]bool) []clustermesh.Origin {
			return deciders(x, gone)[:count]
		}
	}
	others := func(x clustermesh.Origin, _ map[clustermesh.Origin]bool) (out []clustermesh.Origin) {
		for _, o := range all {
			if o != x && !slices.Contains(clustermesh.Deciders(all, x, nil), o) && len(out) < n/2-1 {
				out = append(out, o)
			}
		}
		return out
	}
	if got := claimed(all[:1], some(4), nil); len(got) != 0 {
		t.Errorf("four are enough: %v", got)
	}
	if got := claimed(all[:1], some(5), nil); len(got) != 1 {
		t.Errorf("five are not enough: %v", got)
	}
	if got := claimed(all[:1], others, nil); len(got) != 0 {
		t.Errorf("%d who do not decide are enough: %v", n/2-1, got)
	}
	lost := all[:16] // a rack
	gone := map[clustermesh.Origin]bool{}
	for turn := 1; ; turn++ {
		next := claimed(lost, deciders, gone)
		if len(next) == len(lost) {
			t.Logf("the loss of %d of %d is decided in %d turns", len(lost), n, turn)
			break
		}
		if len(next) <= len(gone) {
			t.Fatalf("after %d turns, %d of %d are dead", turn, len(next), len(lost))
		}
		gone = next
	}
}
