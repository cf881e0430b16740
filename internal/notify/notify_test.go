package notify_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"strait.io/strait/internal/notify"
)

func TestSignal(t *testing.T) {
	s := notify.New()
	received := func() bool {
		select {
		case <-s:
			return true
		default:
			return false
		}
	}
	if received() {
		t.Error("received before a poke")
	}
	s.Poke()
	s.Poke() // must not block
	if !received() || received() {
		t.Error("two pokes before the receiver looked are not one")
	}
	s.Poke()
	if !received() {
		t.Error("a later poke is lost")
	}
	notify.Signal(nil).Poke() // must not block, either
}

func TestBurst(t *testing.T) {
	const quiet, patience = 10 * time.Millisecond, 25 * time.Millisecond
	start := time.Unix(100, 0)
	var b notify.Burst
	for _, step := range []struct{ at, want time.Duration }{
		{0, quiet},
		{8 * time.Millisecond, quiet},
		{16 * time.Millisecond, 9 * time.Millisecond},
		{24 * time.Millisecond, time.Millisecond},
		{30 * time.Millisecond, 0},
	} {
		if got := b.Wait(start.Add(step.at), quiet, patience); got != step.want {
			t.Errorf("after %s: wait %s, want %s", step.at, got, step.want)
		}
	}
}

func TestAwait(t *testing.T) {
	const wait, quiet, patience = time.Second, 10 * time.Millisecond, 25 * time.Millisecond
	for name, tc := range map[string]struct {
		pokes []time.Duration
		end   time.Duration // of ctx; 0 is never
		want  time.Duration
		ok    bool
	}{
		"nothing happens":     {nil, 0, wait, true},
		"one poke":            {[]time.Duration{100 * time.Millisecond}, 0, 110 * time.Millisecond, true},
		"a burst":             {[]time.Duration{0, 5 * time.Millisecond}, 0, 15 * time.Millisecond, true},
		"a burst too long":    {[]time.Duration{0, 8 * time.Millisecond, 16 * time.Millisecond, 24 * time.Millisecond}, 0, patience, true},
		"the end":             {nil, 50 * time.Millisecond, 50 * time.Millisecond, false},
		"the end, in a burst": {[]time.Duration{0}, 5 * time.Millisecond, 5 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := notify.New()
				for _, at := range tc.pokes {
					time.AfterFunc(at, s.Poke)
				}
				if tc.end > 0 {
					time.AfterFunc(tc.end, cancel)
				}
				start := time.Now()
				ok := notify.Await(ctx, s, wait, quiet, patience)
				if took := time.Since(start); ok != tc.ok || took != tc.want {
					t.Errorf("%v after %s, want %v after %s", ok, took, tc.ok, tc.want)
				}
			})
		})
	}
}
