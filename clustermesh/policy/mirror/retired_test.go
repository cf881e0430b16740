package mirror

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/written"
)

// TestRetired: a write that is early waits for as long as it stays early, and at most so long. The
// others do not wait.
func TestRetired(t *testing.T) {
	op := func(name string, early bool) written.Op {
		return written.Op{Verb: written.Delete, Kind: written.Service, Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}, Early: early}
	}
	var r Retired
	start := time.Unix(100, 0)
	for _, c := range []struct {
		after time.Duration
		ops   []written.Op
		want  string
	}{
		{0, []written.Op{op("a", true), op("b", false), op("c", true)}, "[b]"},
		{retirement / 2, []written.Op{op("a", true), op("c", false)}, "[c]"},
		{retirement - 1, []written.Op{op("a", true), op("c", true)}, "[]"},
		{retirement, []written.Op{op("a", true), op("c", true)}, "[a]"},
		{2*retirement - 1, []written.Op{op("c", true)}, "[c]"},
	} {
		names := []string{}
		for _, o := range r.Due(slices.Clone(c.ops), start.Add(c.after)) {
			names = append(names, o.Service().Name)
		}
		if fmt.Sprint(names) != c.want {
			t.Errorf("after %v: %v, want %s", c.after, names, c.want)
		}
	}
	if r.Due(nil, start); len(r) > 0 {
		t.Errorf("what is gone is remembered: %v", r)
	}
}
