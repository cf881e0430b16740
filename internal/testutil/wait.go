package testutil

import (
	"testing"
	"time"
)

// pollEvery is short enough not to slow a test down and long enough not to starve what it waits
// for.
const pollEvery = 10 * time.Millisecond

// maxPause is the longest pause between checks that take long themselves.
const maxPause = 2 * time.Second

// Eventually calls check until it returns nil, and fails the test with its last error after
// timeout.
func Eventually(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
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
		// A check that takes long, such as one that starts kubectl, slows down what it waits for.
		time.Sleep(min(max(pollEvery, time.Since(began)), maxPause))
	}
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
