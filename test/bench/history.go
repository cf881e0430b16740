package main

import "sync/atomic"

// history is the sequence of sets that a frontend was given. An answer can be checked against the
// sets that were in force during the call. One goroutine writes, any number of goroutines read.
type history struct {
	// sets are bit sets of the frontend's pods.
	sets [1 << 20]atomic.Uint64
	// applied is the last set that is known to have come into force. wanted is the last set that is
	// possibly in force.
	applied, wanted atomic.Int64
}

// want records that a set is possibly in force from now on.
func (h *history) want(pods uint64) {
	n := h.wanted.Load() + 1
	h.sets[n%int64(len(h.sets))].Store(pods)
	h.wanted.Store(n)
}

// apply records that the last wanted set is in force.
func (h *history) apply() { h.applied.Store(h.wanted.Load()) }

// now returns the current moment, for allows.
func (h *history) now() int64 { return h.applied.Load() }

// allows reports whether the pod was in a set that was possibly in force at some time since then.
func (h *history) allows(pod int, since int64) bool {
	for n := since; n <= h.wanted.Load(); n++ {
		if h.sets[n%int64(len(h.sets))].Load()&(1<<pod) != 0 {
			return true
		}
	}
	return false
}
