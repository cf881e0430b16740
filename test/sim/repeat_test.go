package sim

import "testing"

// TestRepeats: the same seed leads to the same messages, so that what fails can be repeated.
func TestRepeats(t *testing.T) {
	for i := range uint64(10) {
		a, b := random(*seed+i), random(*seed+i)
		errA, errB := runFaults(a), runFaults(b)
		if (errA == nil) != (errB == nil) || a.Sent != b.Sent || a.now != b.now {
			t.Errorf("seed %d: %+v after %s, and then %+v after %s", *seed+i, a.Sent, a.now, b.Sent, b.now)
		}
	}
}
