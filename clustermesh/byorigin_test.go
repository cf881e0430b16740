package clustermesh

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// snapshot is a ByOrigin, and what it must hold whatever changes later.
type snapshot struct {
	is   ByOrigin[int]
	want map[Origin]int
}

func (s snapshot) check(t *rapid.T) {
	if got := maps.Collect(s.is.All()); !maps.Equal(got, s.want) {
		t.Fatalf("it has %v, want %v", got, s.want)
	}
	if s.is.Len() != len(s.want) {
		t.Fatalf("it counts %d, and has %d", s.is.Len(), len(s.want))
	}
	clusters := map[ClusterName]map[Origin]int{}
	for o, v := range s.want {
		if got, has := s.is.Lookup(o); !has || got != v || s.is.Get(o) != v {
			t.Fatalf("%s: %d, %v; want %d", o, got, has, v)
		}
		if clusters[o.Cluster] == nil {
			clusters[o.Cluster] = map[Origin]int{}
		}
		clusters[o.Cluster][o] = v
	}
	if got, want := s.is.Clusters(), slices.Sorted(maps.Keys(clusters)); !slices.Equal(got, want) {
		t.Fatalf("clusters %v, want %v", got, want)
	}
	for c, want := range clusters {
		if got := maps.Collect(s.is.Of(c)); !maps.Equal(got, want) {
			t.Fatalf("cluster %s has %v, want %v", c, got, want)
		}
	}
	if got, want := s.is.Origins(), slices.SortedFunc(maps.Keys(s.want), Origin.Compare); !slices.Equal(got, want) {
		t.Fatalf("origins %v, want %v", got, want)
	}
	missing := Origin{Cluster: "a", Node: "missing"}
	if v, has := s.is.Lookup(missing); has || v != 0 || s.is.Get(missing) != 0 {
		t.Fatalf("an origin without a value has %d", v)
	}
}

// TestByOrigin: whatever is done to a ByOrigin and to Drafts of it, it holds what a map would, and earlier
// ones stay as they were. Since names what changed between any two.
func TestByOrigin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		origins := rapid.Custom(func(t *rapid.T) Origin {
			return Origin{rapid.SampledFrom([]ClusterName{"a", "b", "c"}).Draw(t, "cluster"), rapid.SampledFrom([]NodeName{"", "n1", "n2"}).Draw(t, "node")}
		})
		var draft Draft[int]
		model := map[Origin]int{}
		taken := []snapshot{{ByOrigin[int]{}, map[Origin]int{}}}
		take := func(is ByOrigin[int], want map[Origin]int) { taken = append(taken, snapshot{is, maps.Clone(want)}) }
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"set in the draft": func(t *rapid.T) {
				o := origins.Draw(t, "origin")
				next++
				draft.Set(o, next)
				model[o] = next
			},
			"delete in the draft": func(t *rapid.T) {
				o := origins.Draw(t, "origin")
				draft.Delete(o)
				delete(model, o)
			},
			"share": func(*rapid.T) { take(draft.Share(), model) },
			"with and without": func(t *rapid.T) {
				of := rapid.SampledFrom(taken).Draw(t, "of")
				o, want := origins.Draw(t, "origin"), maps.Clone(of.want)
				next++
				want[o] = next
				take(of.is.With(o, next), want)
				delete(want, o)
				take(of.is.Without(o), want)
			},
			"draft of an earlier one": func(t *rapid.T) {
				of := rapid.SampledFrom(taken).Draw(t, "of")
				draft, model = of.is.Draft(), maps.Clone(of.want)
			},
			"from a map": func(*rapid.T) { take(NewByOrigin(model), model) },
			"": func(t *rapid.T) {
				for o := range model {
					if v, has := draft.Lookup(o); !has || v != model[o] || draft.Get(o) != v {
						t.Fatalf("the draft has %d of %s, want %d", v, o, model[o])
					}
				}
				for _, s := range taken {
					s.check(t)
				}
				a, b := taken[len(taken)-1], rapid.SampledFrom(taken).Draw(t, "before")
				named := map[Origin]bool{}
				for o := range a.is.Since(b.is) {
					if named[o] {
						t.Fatalf("%s is named twice", o)
					}
					named[o] = true
				}
				for _, o := range slices.Concat(a.is.Origins(), b.is.Origins()) {
					va, hasA := a.want[o]
					vb, hasB := b.want[o]
					if (va != vb || hasA != hasB) && !named[o] {
						t.Fatalf("%s changed from %d to %d, and is not named", o, vb, va)
					}
				}
			},
		})
	})
}

// TestSinceIsNarrow: Since names nothing but what was set or deleted.
func TestSinceIsNarrow(t *testing.T) {
	before := NewByOrigin(map[Origin]int{{"a", ""}: 1, {"a", "n1"}: 1, {"a", "n2"}: 1, {"b", "n1"}: 1})
	after := before.With(Origin{"a", "n1"}, 2).Without(Origin{"b", "n1"}).With(Origin{"c", ""}, 1)
	got := slices.SortedFunc(after.Since(before), Origin.Compare)
	want := []Origin{{"a", "n1"}, {"b", "n1"}, {"c", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("it names %v, want %v", got, want)
	}
	if got := slices.Collect(after.Since(after)); len(got) > 0 {
		t.Errorf("nothing changed, and it names %v", got)
	}
}
