package reconcile_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strait.io/strait/daemon/reconcile"
)

// start runs a loop whose apply sends its number and returns the error of fail; stop waits for its end.
func start(t *testing.T, c reconcile.Config, fail func(n int) error) (trigger chan struct{}, applied chan int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	trigger, applied = make(chan struct{}, 1), make(chan int, 1000)
	done := make(chan struct{})
	n := 0
	go func() {
		defer close(done)
		reconcile.Run(ctx, c, trigger, func(context.Context) error {
			n++
			applied <- n
			return fail(n)
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return trigger, applied
}

func next(t *testing.T, applied <-chan int) int {
	t.Helper()
	select {
	case n := <-applied:
		return n
	case <-time.After(10 * time.Second):
		t.Fatal("no call of apply within 10 s")
		return 0
	}
}

func ok(int) error { return nil }

func TestAppliesAtOnceAndOnTrigger(t *testing.T) {
	trigger, applied := start(t, reconcile.Config{Resync: time.Hour}, ok)
	next(t, applied)
	trigger <- struct{}{}
	if n := next(t, applied); n != 2 {
		t.Errorf("call %d", n)
	}
}

func TestCoalescesABurst(t *testing.T) {
	trigger, applied := start(t, reconcile.Config{Resync: time.Hour, Quiet: 200 * time.Millisecond, MaxWait: time.Minute}, ok)
	next(t, applied)
	for range 50 {
		trigger <- struct{}{}
	}
	if n := next(t, applied); n != 2 {
		t.Errorf("call %d", n)
	}
	select {
	case n := <-applied:
		t.Errorf("burst of triggers led to call %d", n)
	case <-time.After(400 * time.Millisecond):
	}
}

func TestAStormDoesNotStarve(t *testing.T) {
	trigger, applied := start(t, reconcile.Config{Resync: time.Hour, Quiet: time.Hour, MaxWait: 20 * time.Millisecond}, ok)
	next(t, applied)
	trigger <- struct{}{}
	next(t, applied) // Quiet is never reached, MaxWait is
}

// TestShortAppliesWaitLess: in a storm, a short apply is followed by a short wait, so that one origin that
// makes a storm does not delay others; a long apply still has its rest.
func TestShortAppliesWaitLess(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ took, wait time.Duration }{{0, 5 * ms}, {1 * ms, 5 * ms}, {5 * ms, 20 * ms}, {200 * ms, 50 * ms}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			trigger := make(chan struct{}, 1)
			var storm sync.WaitGroup
			defer storm.Wait()
			storm.Go(func() {
				for ctx.Err() == nil {
					select {
					case trigger <- struct{}{}:
					default:
					}
					time.Sleep(ms / 2)
				}
			})
			var ended time.Time
			reconcile.Run(ctx, reconcile.Config{}, trigger, func(context.Context) error {
				if wait := time.Since(ended); !ended.IsZero() && (wait < c.wait || wait > c.wait+ms) {
					t.Errorf("after an apply of %s it waits %s, want %s", c.took, wait, c.wait)
				}
				time.Sleep(c.took)
				ended = time.Now()
				return nil
			})
		})
	}
}

func TestRetriesUntilItWorks(t *testing.T) {
	_, applied := start(t, reconcile.Config{Resync: time.Hour, RetryMin: time.Millisecond, RetryMax: 4 * time.Millisecond}, func(n int) error {
		if n < 5 {
			return errors.New("not yet")
		}
		return nil
	})
	for want := 1; want <= 5; want++ {
		if n := next(t, applied); n != want {
			t.Fatalf("call %d, want %d", n, want)
		}
	}
	select {
	case n := <-applied:
		t.Errorf("call %d after success", n)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestResyncs(t *testing.T) {
	_, applied := start(t, reconcile.Config{Resync: time.Millisecond}, ok)
	for range 3 {
		next(t, applied)
	}
}
