package main

import "testing"

func TestHistory(t *testing.T) {
	var h history
	h.want(0b001)
	h.apply()
	before := h.now()
	h.want(0b010)
	for pod, want := range []bool{true, true, false} {
		if got := h.allows(pod, before); got != want {
			t.Errorf("while the second set is made, pod %d: %v, want %v", pod, got, want)
		}
	}
	h.apply()
	for pod, want := range []bool{false, true, false} {
		if got := h.allows(pod, h.now()); got != want {
			t.Errorf("once the second set is in force, pod %d: %v, want %v", pod, got, want)
		}
	}
	h.want(0b100)
	h.apply()
	for pod, want := range []bool{true, true, true} {
		if got := h.allows(pod, before); got != want {
			t.Errorf("asked before, answered after two flips, pod %d: %v, want %v", pod, got, want)
		}
	}
}
