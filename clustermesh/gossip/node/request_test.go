package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"strait.io/strait/clustermesh/trust"
)

// TestNextRequest: while no machine signs, the pauses grow, but not so long that a change is noticed late.
func TestNextRequest(t *testing.T) {
	for err, want := range map[error]time.Duration{
		errors.New("refused"):                           lastRequest,
		fmt.Errorf("answers: %w", trust.ErrSignerAhead): trust.Rotating,
		ErrNoSigners: unheardRequest,
	} {
		wait := FirstRequest
		for range 20 {
			wait = NextRequest(wait, err)
		}
		if wait != want || NextRequest(wait, nil) != FirstRequest {
			t.Errorf("%v: the pause becomes %s, want %s", err, wait, want)
		}
	}
}

// TestNoSigner: that no machine can sign is reported once it lasts. What a signer answers is reported at once,
// and neither while the node starts.
func TestNoSigner(t *testing.T) {
	n := New(signing(config(origin("west", "n1"), at), pinned("west")), Saved{}, at)
	refused := errors.New("refused")
	for _, step := range []struct {
		after time.Duration // since the node began
		err   error
		want  bool
	}{
		{time.Second, refused, false},
		{time.Minute, ErrNoSigners, false},
		{time.Minute + time.Second, nil, false},
		{2 * time.Minute, ErrNoSigners, false},
		{2*time.Minute + askGrace - 1, ErrNoSigners, false},
		{2*time.Minute + askGrace, ErrNoSigners, true},
		{3 * time.Minute, nil, false},
		{4 * time.Minute, refused, true},
	} {
		n.ReportStatement(step.err, at, at.Add(step.after))
		if got := n.problems.has("statement"); got != step.want {
			t.Errorf("after %s, %v: reported %t, want %t", step.after, step.err, got, step.want)
		}
	}
}
