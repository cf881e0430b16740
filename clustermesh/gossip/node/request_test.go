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
