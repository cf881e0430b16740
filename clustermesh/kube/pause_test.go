package kube

import (
	"testing"
	"time"

	"strait.io/strait/internal/notify"
)

// Objects are read while changes pour in: what a leader writes for 10,000 imports goes on for minutes.
func TestPauseEnds(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second} {
		var burst notify.Burst
		first, waited := time.Unix(100, 0), time.Duration(0)
		quietFor, patienceFor := pause(took)
		for burst.Wait(first.Add(waited), quietFor, patienceFor) > 0 {
			waited += 5 * time.Millisecond // the next change
			if waited > 10*time.Second {
				t.Fatalf("never, where reading takes %s", took)
			}
		}
		if waited < 5*took || waited > max(patience, 5*took)+5*time.Millisecond {
			t.Errorf("waited %s where reading takes %s", waited, took)
		}
		if quietFor != max(quiet, took) {
			t.Errorf("a single change waits %s where reading takes %s", quietFor, took)
		}
	}
}
