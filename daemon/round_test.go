package daemon

import (
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
)

// Only what came and what went is news, whatever the order and however often it is repeated.
func TestNews(t *testing.T) {
	p := func(names ...string) (out []clustermesh.Problem) {
		for _, n := range names {
			out = append(out, clustermesh.Problem{Object: n})
		}
		return out
	}
	came, went := news(p("a", "b", "c"), p("d", "c", "a"))
	if !slices.Equal(came, p("d")) || !slices.Equal(went, p("b")) {
		t.Errorf("came %v, went %v", came, went)
	}
}
