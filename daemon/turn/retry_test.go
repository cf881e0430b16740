package turn_test

import (
	"testing"
	"time"

	"strait.io/strait/daemon/turn"
)

// TestRetry: what the kernel refuses is tried again soon, then less and less often. A part that was
// accepted is checked from time to time, or when it asks for it.
func TestRetry(t *testing.T) {
	const ms = time.Millisecond
	var r turn.Retry
	for i, c := range []struct {
		refused     bool
		again, want time.Duration
	}{
		{false, 0, turn.Resync},
		{false, 2 * time.Second, 2 * time.Second},
		{false, time.Hour, turn.Resync},
		{true, 0, 100 * ms}, {true, 0, 200 * ms}, {true, 150 * ms, 150 * ms}, {true, 0, 800 * ms},
		{false, 0, turn.Resync},
		{true, 0, 100 * ms},
	} {
		if got := r.Wait(c.refused, c.again); got != c.want {
			t.Errorf("run %d: %s, want %s", i, got, c.want)
		}
	}
	for range 100 {
		r.Wait(true, 0)
	}
	if got := r.Wait(true, 0); got != turn.Resync {
		t.Errorf("after many refusals: %s", got)
	}
}
