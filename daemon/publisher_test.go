package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// TestNotPublished: only what fails twice in a row is reported, with the object, until it works. A
// new text is written at once, and the same one is none.
func TestNotPublished(t *testing.T) {
	p := &publisher{namespace: "strait-system", name: "strait-this-cluster", chore: newChore[string]()}
	for i, step := range []struct {
		err  error
		want int
	}{{errors.New("forbidden"), 0}, {errors.New("forbidden"), 1}, {nil, 0}, {errors.New("forbidden"), 0}} {
		p.tried("", step.err)
		got := p.problems()
		if len(got) != step.want || step.want > 0 && !strings.Contains(got[0].String(), "strait-system/strait-this-cluster") {
			t.Errorf("after step %d: %v, want %d problems", i, got, step.want)
		}
	}
	for _, step := range []struct {
		text string
		news bool
	}{{"a", true}, {"a", false}, {"b", true}} {
		if p.set(step.text); testutil.Signalled(p.poke, 10*time.Millisecond) != step.news {
			t.Errorf("%q: it is news: %v", step.text, !step.news)
		}
	}
}
