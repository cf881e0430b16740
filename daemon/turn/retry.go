package turn

import "time"

const (
	// Resync is how long a part of the kernel goes unchecked if nothing happens that concerns it.
	Resync = 30 * time.Second
	// RefusedMin is the first delay before retrying what the kernel refused. The delay doubles up
	// to Resync.
	RefusedMin = 100 * time.Millisecond
)

// Retry decides when a part runs again if nothing that concerns it happens before.
type Retry struct {
	refusals int // runs in a row in which the kernel refused an object
}

// Wait returns how long after a run the next one is due. Refused is whether the kernel refused an
// object in it, and again how soon the part wants to run itself; 0 if it does not.
func (r *Retry) Wait(refused bool, again time.Duration) time.Duration {
	wait := Resync
	if refused {
		wait = min(RefusedMin<<min(r.refusals, 20), Resync)
		r.refusals++
	} else {
		r.refusals = 0
	}
	if again > 0 {
		wait = min(wait, again)
	}
	return wait
}
