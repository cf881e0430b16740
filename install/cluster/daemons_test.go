package cluster

import (
	"fmt"
	"testing"
)

// TestBounded: what is beyond the bound is dropped and noticed, and the writer never waits.
func TestBounded(t *testing.T) {
	for writes, want := range map[int]struct {
		text string
		over bool
	}{0: {"", false}, 2: {"abab", false}, 3: {"ababa", true}, 9: {"ababa", true}} {
		b := bounded{most: 5}
		for range writes {
			if n, err := fmt.Fprint(&b, "ab"); n != 2 || err != nil {
				t.Errorf("a write of two bytes: %d, %v", n, err)
			}
		}
		if b.String() != want.text || b.over != want.over {
			t.Errorf("%d writes: %q, over %v; want %+v", writes, b.String(), b.over, want)
		}
	}
}
