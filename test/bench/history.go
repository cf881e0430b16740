package main

import "sync/atomic"

// history is the sets that a frontend was to have, in order, so that an answer can be checked against those
// in force while it was asked for. One goroutine writes, any number read.
type history struct {
	// sets are bits over the frontend's pods.
	sets [1 << 20]atomic.Uint64
	// applied is the last set that is surely in force, or was followed by another; wanted the last that may
	// be in force.
	applied, wanted atomic.Int64
}

// want says that a set may be in force from now on.
func (h *history) want(pods uint64) {
	n := h.wanted.Load() + 1
	h.sets[n%int64(len(h.sets))].Store(pods)
	h.wanted.Store(n)
}

// apply says that the last wanted set is in force.
func (h *history) apply() { h.applied.Store(h.wanted.Load()) }

// now is a moment to ask about later.
func (h *history) now() int64 { return h.applied.Load() }

// allows reports whether the pod was in a set that may have been in force at some time since a moment.
func (h *history) allows(pod int, since int64) bool {
	for n := since; n <= h.wanted.Load(); n++ {
		if h.sets[n%int64(len(h.sets))].Load()&(1<<pod) != 0 {
			return true
		}
	}
	return false
}
