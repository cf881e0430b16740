package testutil

import (
	"testing"
	"time"
)

const (
	// pollEvery is the pause between the first checks.
	pollEvery = 10 * time.Millisecond
	// settledPause is the longest pause between checks that take no time themselves, and maxPause
	// between those that do.
	settledPause = 250 * time.Millisecond
	maxPause     = 2 * time.Second
)

// Eventually calls check until it returns nil, and fails the test with its last error after
// timeout.
func Eventually(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	start := time.Now()
	deadline := start.Add(timeout)
	for {
		began := time.Now()
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", timeout, err)
			return
		}
		now := time.Now()
		time.Sleep(pause(now.Sub(start), now.Sub(began)))
	}
}

// pause returns for how long to wait before the next check. Checks take time from what they wait for:
// one that starts kubectl some tenths of a second, and eight tests that ask an API server without a
// pause keep it busy. So a wait gets a tenth longer at most, and a check that takes long has twice as
// long a pause.
func pause(waited, check time.Duration) time.Duration {
	return min(max(pollEvery, 2*check, min(waited/10, settledPause)), maxPause)
}

// Signalled reports whether a signal comes within the time.
func Signalled(signal <-chan struct{}, wait time.Duration) bool {
	select {
	case <-signal:
		return true
	case <-time.After(wait):
		return false
	}
}
