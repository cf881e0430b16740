package clustermesh

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestDeadBy: the origins with claims are enough to know all dead nodes.
func TestDeadBy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		origin := rapid.Custom(func(t *rapid.T) Origin {
			return Origin{rapid.SampledFrom([]ClusterName{"a", "a", "b"}).Draw(t, "cluster"), rapid.SampledFrom([]NodeName{"", "n1", "n1", "n2", "n3", "n4"}).Draw(t, "node")}
		})
		var s State
		claimants, nodes := ByOrigin[bool]{}, map[Origin]bool{}
		for range rapid.IntRange(0, 15).Draw(t, "records") {
			o := origin.Draw(t, "of")
			r := Record{Origin: o, Stamp: Stamp{Epoch: uint64(rapid.IntRange(1, 2).Draw(t, "epoch"))}}
			if o.Node != "" && rapid.IntRange(0, 5).Draw(t, "is a node") > 0 {
				r.Content.Node = &Node{Name: o.Node}
			}
			for range rapid.IntRange(0, 4).Draw(t, "claims") {
				r.Content.Silent = append(r.Content.Silent, Silence{Origin: origin.Draw(t, "silent"), Epoch: uint64(rapid.IntRange(1, 2).Draw(t, "in epoch"))})
			}
			s.Records = s.Records.With(o, r)
			s.Contacts = s.Contacts.With(o, rapid.SampledFrom([]Contact{Alive, Silent, Silent, Silent}).Draw(t, "contact"))
			claimants = claimants.With(o, true)
			for _, c := range r.Content.Silent {
				nodes[c.Origin] = true
			}
		}
		for o := range s.Records.All() {
			nodes[o] = true
			if len(s.Records.Get(o).Content.Silent) == 0 {
				claimants = claimants.Without(o)
			}
		}
		want := map[Origin]bool{}
		for o := range nodes {
			if o.Node != "" && s.Dead(o) {
				want[o] = true
			}
		}
		if got := s.DeadBy(claimants); !maps.Equal(got, want) {
			t.Fatalf("dead: %v, want %v", got, want)
		}
	})
}
