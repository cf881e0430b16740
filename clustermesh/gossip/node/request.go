package node

import (
	"errors"
	"time"

	"strait.io/strait/clustermesh/trust"
)

// Pauses between requests for a statement about this node, before jitter. What changes is requested
// at once, but not more often than each FirstRequest: pods can come one after the other. The pause
// doubles with each refusal; while no signer is heard, it is at most unheardRequest.
const (
	FirstRequest   = 200 * time.Millisecond
	lastRequest    = 15 * time.Second
	unheardRequest = time.Second
)

// NextRequest returns the pause after a request, of which err is the result, from the one before it.
func NextRequest(wait time.Duration, err error) time.Duration {
	switch {
	case err == nil:
		return FirstRequest
	case errors.Is(err, trust.ErrSignerAhead):
		return trust.Rotating // its clock can be right at any moment
	case errors.Is(err, ErrNoSigners):
		return min(2*wait, unheardRequest)
	}
	return min(2*wait, lastRequest)
}
