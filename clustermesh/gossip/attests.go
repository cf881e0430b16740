package gossip

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

// attestRate and attestBurst bound how often Attest is called, in calls a second: each can be a
// TokenReview of the API server, and anyone who has the gossip key can request one. A clusterset of
// thousands of new nodes has its statements after two minutes.
const (
	attestRate  = 50
	attestBurst = 100
)

// attests paces calls of Attest. Peers that have proven which node they are have a share of their
// own, so that no other peer makes them wait.
type attests struct{ known, strangers *rate.Limiter }

func newAttests() attests {
	return attests{rate.NewLimiter(attestRate, attestBurst), rate.NewLimiter(attestRate, attestBurst)}
}

// wait returns when Attest may be called, or an error if that takes longer than ctx.
func (a attests) wait(ctx context.Context, known bool) error {
	limiter := a.strangers
	if known {
		limiter = a.known
	}
	if err := limiter.Wait(ctx); err != nil {
		return fmt.Errorf("too many nodes request statements: %w", err)
	}
	return nil
}
