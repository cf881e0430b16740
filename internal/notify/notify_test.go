package notify_test

import (
	"testing"
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
