package daemon

import (
	"errors"
	"testing"
	"time"

	"strait.io/strait/internal/problem"

	"strait.io/strait/daemon/turn"
)

func TestPauseAfter(t *testing.T) {
	var p pacer
	for i, c := range []struct{ took, want time.Duration }{
		{20 * time.Millisecond, 4 * time.Second},
		{time.Millisecond, mendEvery},
		{time.Second, mendEvery}, // the machine stood still
		{0, mendEvery},
		{20 * time.Millisecond, mendEvery},
		{40 * time.Millisecond, mendEvery},
		{20 * time.Millisecond, 4 * time.Second}, // there is more to look at now
		{time.Second, 4 * time.Second},
		{time.Second, 4 * time.Second},
		{time.Second, turn.Resync}, // what is wanted is back within this time
	} {
		if got := p.pauseAfter(c.took); got != c.want {
			t.Errorf("look %d, which took %v: %v, want %v", i, c.took, got, c.want)
		}
	}
}

// A program that changes the same thing again and again fills no log; what cannot be put back is a Problem until it
// can.
func TestMended(t *testing.T) {
	var m mended
	now := time.Now()
	for i, c := range []struct {
		changed []string
		after   time.Duration
		logged  bool
	}{
		{nil, 0, false},
		{[]string{"pin sets"}, 0, true},
		{[]string{"pin sets"}, time.Second, false},
		{nil, 2 * time.Second, false},
		{[]string{"pin sets"}, 3 * time.Second, false},
		{[]string{"pin services"}, 4 * time.Second, true},
		{[]string{"pin services"}, 4*time.Second + mendLogPause, true},
	} {
		if got := m.note(c.changed, nil, now.Add(c.after)); got != c.logged {
			t.Errorf("step %d: logged: %v, want %v", i, got, c.logged)
		}
	}
	m.note(nil, errors.Join(errors.New("pins /x: not on a bpffs; mount one"), errors.New("other")), now)
	ps := m.problems()
	if len(ps) != 2 || ps[0].Code != problem.BalancerChanged || ps[0].Try != "mount one" || ps[1].Try != "" {
		t.Errorf("problems: %+v", ps)
	}
	if m.note(nil, nil, now); len(m.problems()) > 0 {
		t.Errorf("problems of what is put back: %v", m.problems())
	}
}
