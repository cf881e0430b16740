package mcs

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/written"
)

// TestRewrites: what changes derived slices that exist can wait, unless none of them would stay.
func TestRewrites(t *testing.T) {
	op := func(v written.Verb, name string) written.Op {
		return written.Op{Verb: v, Kind: written.EndpointSlice, Object: &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
	h := Have{Slices: []Slice{{Name: "a", Derived: "derived-x"}, {Name: "b", Derived: "derived-x"}, {Name: "import"}}}
	for _, c := range []struct {
		name string
		ops  []written.Op
		want bool
		left int // without rewrites
	}{
		{"nothing", nil, false, 0},
		{"a new slice", []written.Op{op(written.Create, "c")}, false, 1},
		{"a slice of the import", []written.Op{op(written.Apply, "import")}, false, 1},
		{"other endpoints", []written.Op{op(written.Create, "c"), op(written.Apply, "a")}, true, 1},
		{"a cluster less", []written.Op{op(written.Delete, "a")}, true, 0},
		{"another cluster", []written.Op{op(written.Create, "c"), op(written.Delete, "a"), op(written.Delete, "b")}, false, 1},
	} {
		if got, left := h.Rewrites(c.ops), len(h.WithoutRewrites(c.ops)); got != c.want || left != c.left {
			t.Errorf("%s: %t with %d others, want %t with %d", c.name, got, left, c.want, c.left)
		}
	}
}
