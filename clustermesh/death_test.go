package clustermesh_test

import (
	"fmt"
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
