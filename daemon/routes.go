package daemon

import (
	"context"
	"slices"
	"time"

	"strait.io/strait/datapath/route"
	"strait.io/strait/internal/problem"
)

// routes is the part that maintains strait's routing table and the rules that lead to it.
type routes struct{ *route.Router }

func (routes) name() string         { return "route" }
func (routes) again() time.Duration { return 0 }

func (routes) same(a, b want) bool {
	return sameList(a.Routes, b.Routes) || slices.Equal(a.Routes, b.Routes)
}

func (r routes) put(_ context.Context, j job) ([]problem.Problem, error) {
	return r.Reconcile(j.Routes, false)
}

func (r routes) prune(_ context.Context, j job) ([]problem.Problem, error) {
	return r.Reconcile(j.Routes, true)
}
