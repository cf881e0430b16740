// Package notify wakes a loop: look again, something changed. What changed is not said, so many changes
// before the loop looks are one.
//
// Signal carries the news, Await waits for it and for the end of its burst. The package must not know what
// changed, and it starts nothing.
package notify

import (
	"context"
	"time"
)

// Signal wakes one receiver, which gets a value after one or more pokes. Make it with New; a nil Signal
// has no receiver to wake.
type Signal chan struct{}

// New makes a Signal.
func New() Signal { return make(Signal, 1) }

// Poke wakes the receiver, now or when it next waits. It never blocks: pokes that were not received yet
// are one.
func (s Signal) Poke() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Burst spaces the handling of events that come in bursts. The zero value is ready for the first event.
type Burst struct{ first time.Time }

// Wait returns how long after an event at now its burst is to be handled, unless another event comes
// sooner: when none came for quiet, but no later than patience after the burst's first.
func (b *Burst) Wait(now time.Time, quiet, patience time.Duration) time.Duration {
	if b.first.IsZero() {
		b.first = now
	}
	return max(0, min(quiet, patience-now.Sub(b.first)))
}

// Await returns true when wait is over or, if c receives before, when that burst is; false when ctx is done.
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
