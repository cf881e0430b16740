// Package notify wakes a loop: look again, something changed. It does not say what changed, so any
// number of changes before the loop looks count as one.
//
// Signal carries the news; Await waits for it and for the end of its burst. The package must not
// know what changed, and starts nothing.
package notify

import (
	"context"
	"time"
)

// Signal wakes one receiver, which gets one value after one or more pokes. Make it with New; a nil
// Signal has no receiver.
type Signal chan struct{}

// New makes a Signal.
func New() Signal { return make(Signal, 1) }

// Poke wakes the receiver, now or when it next waits. It never blocks: pokes that have not been
// received yet are merged into one.
func (s Signal) Poke() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Burst decides when to handle events that come in bursts. The zero value is ready for the first
// event.
type Burst struct{ first time.Time }

// Wait returns how long after an event at now to handle its burst, unless another event comes
// sooner: once no event has come for quiet, but no later than patience after the first event of the
// burst.
func (b *Burst) Wait(now time.Time, quiet, patience time.Duration) time.Duration {
	if b.first.IsZero() {
		b.first = now
	}
	return max(0, min(quiet, patience-now.Sub(b.first)))
}

// Await returns true when wait is over. If c receives before that, it returns true when the burst
// is over. It returns false when ctx is done.
func Await(ctx context.Context, c <-chan struct{}, wait, quiet, patience time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var burst Burst
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-c:
			timer.Reset(burst.Wait(time.Now(), quiet, patience))
		}
	}
}
