package stream

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/gossipkey"
)

// TestRekey: while two peers have a key in common, messages arrive. A peer that is left with a key that
// is dropped loses its open stream, although it keeps it busy.
func TestRekey(t *testing.T) {
	all := ends(t, "a", "b", "evicted", "stranger")
	a, b, evicted := all["a"], all["b"], all["evicted"]
	for _, e := range []*end{b, evicted} {
		e.Follow(map[clustermesh.Origin]bool{a.self: true})
	}
	eventually(t, "the streams stand", func() bool { return slices.Equal(a.from(), []string{"b", "evicted"}) })
	old, next := gossipkey.Key{7}, gossipkey.Key{9}
	for i, keys := range []gossipkey.Ring{{old, next}, {next, old}, {next}} {
		for _, e := range []*end{a, b} {
			if err := e.Rekey(keys); err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(i, e.self.Node)
			// Sent again, as the replica does: what is in transit on a stream that is renewed can be lost.
			eventually(t, "what b says arrives", func() bool { b.Send(a.self, []byte(said)); return a.got("b " + said) })
		}
		time.Sleep(renewWithin)
	}
	if b.do(func() {}); b.renewed != 3 {
		t.Errorf("b renewed its stream %d times, want once after each change", b.renewed)
	}
	eventually(t, "the stream of the old key ends", func() bool {
		evicted.Send(a.self, []byte("busy"))
		return slices.Equal(a.from(), []string{"b"})
	})
	evicted.Send(a.self, []byte("late"))
	time.Sleep(time.Second)
	if a.got("evicted late") || !a.got("evicted busy") {
		t.Error("the old key still counts, or never did")
	}
	if _, err := evicted.Ask(t.Context(), a.addr); err == nil {
		t.Error("the old key opens a stream")
	}
}
