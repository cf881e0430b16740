package daemon

import (
	"errors"
	"testing"

	"strait.io/strait/daemon/trustlevel"
)

// TestKeysNotMade: only what fails twice in a row is reported, until it is made or no longer lacks.
func TestKeysNotMade(t *testing.T) {
	m := &maker{chore: newChore[trustlevel.Missing]()}
	root, pins := trustlevel.Missing{Root: true}, trustlevel.Missing{Pins: "pins"}
	forbidden := errors.New("forbidden")
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() { m.set(root) }, 0},
		{func() { m.tried(root, forbidden) }, 0},
		{func() { m.tried(root, forbidden) }, 1},
		{func() { m.tried(root, nil) }, 0},
		{func() { m.tried(root, forbidden) }, 0},
		{func() { m.set(pins) }, 0},
		{func() { m.tried(root, forbidden) }, 0}, // it was begun before
		{func() { m.tried(pins, forbidden) }, 0},
		{func() { m.tried(pins, forbidden) }, 1},
		{func() { m.set(trustlevel.Missing{}) }, 0},
	} {
		step.do()
		if got := m.problems(); len(got) != step.want {
			t.Errorf("after step %d: %v, want %d problems", i, got, step.want)
		}
	}
}
