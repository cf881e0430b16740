package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestQueue: events happen in the order of their times, and those of the same time in that in which they were added.
func TestQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, 3))
	var q queue
	for range 1000 {
		q.add(event{at: time.Duration(rng.IntN(50))})
	}
	var last event
	for i := range 1000 {
		e, any := q.next(100)
		if !any || e.before(&last) {
			t.Fatalf("event %d is %d of time %d, after %d of %d", i, e.order, e.at, last.order, last.at)
		}
		last = e
		if i%3 == 0 {
			q.add(event{at: e.at + time.Duration(rng.IntN(50))})
		}
	}
}
