package daemon

import (
	"context"
	"slices"
	"time"

	"strait.io/strait/datapath/masquerade"
	"strait.io/strait/internal/problem"
)

// exempted is the part that preserves pods' source addresses on their way into the tunnel.
type exempted struct{ *masquerade.Exemption }

func (exempted) name() string         { return "masquerade" }
func (exempted) again() time.Duration { return 0 }

func (exempted) same(a, b want) bool {
	return a.Sources.Node == b.Sources.Node && slices.Equal(a.Sources.Prefixes, b.Sources.Prefixes)
}

func (e exempted) put(_ context.Context, j job) ([]problem.Problem, error) {
	return e.Reconcile(j.Sources, false)
}

func (e exempted) prune(_ context.Context, j job) ([]problem.Problem, error) {
	return e.Reconcile(j.Sources, true)
}
