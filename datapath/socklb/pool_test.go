package socklb

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is taken, retired and settled, no number is in two hands, none is lost, and the free list
// stays sorted and joined.
func TestPoolProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint32Range(1, 64).Draw(t, "size")
		p, err := newPool(size, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out, limbo []extent
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Uint32Range(0, size).Draw(t, "n")
				longest := p.largest()
				e, ok := p.take(n)
				if ok != (n <= longest) {
					t.Fatalf("take(%d) = %v with a longest free run of %d", n, ok, longest)
				}
				if ok && e.count != n {
					t.Fatalf("take(%d) gave %v", n, e)
				}
				if ok && n > 0 {
					out = append(out, e)
				}
			},
			"retire": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("nothing is out")
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "i")
				p.retire(out[i])
				limbo = append(limbo, out[i])
				out = slices.Delete(out, i, i+1)
			},
			"settle": func(*rapid.T) { p.settle(); limbo = nil },
			"restart": func(t *rapid.T) {
				q, err := newPool(size, out)
				if err != nil {
					t.Fatal(err)
				}
				p, limbo = q, nil
			},
			"": func(t *rapid.T) {
				owners := make([]int, size)
				for _, list := range [][]extent{out, limbo, p.free} {
					for _, e := range list {
						for n := e.base; n < e.end(); n++ {
							owners[n]++
						}
					}
				}
				for n, c := range owners {
					if c != 1 {
						t.Fatalf("%d has %d owners: out %v, limbo %v, free %v", n, c, out, limbo, p.free)
					}
				}
				for i := 1; i < len(p.free); i++ {
					if p.free[i-1].end() >= p.free[i].base {
						t.Fatalf("free list is not sorted and joined: %v", p.free)
					}
				}
			},
		})
	})
}

func TestNewPoolRefusesOverlap(t *testing.T) {
	for name, used := range map[string][]extent{
		"overlap": {{0, 4}, {3, 1}},
		"above":   {{6, 3}},
		"wraps":   {{7, ^uint32(0)}},
	} {
		if _, err := newPool(8, used); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
