package daemon

import (
	"context"
	"slices"
	"time"

	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// routes is the part that maintains strait's routing table and the rules that lead to it.
type routes struct{ *kernel }

func (routes) name() string         { return "route" }
func (routes) again() time.Duration { return 0 }

func (routes) same(a, b want) bool {
	return datapath.SameList(a.Routes, b.Routes) || slices.Equal(a.Routes, b.Routes)
}

func (r routes) put(_ context.Context, j job) ([]problem.Problem, error) {
	return r.reconcile(j, false)
}

func (r routes) prune(_ context.Context, j job) ([]problem.Problem, error) {
	return r.reconcile(j, true)
}

func (r routes) reconcile(j job, prune bool) ([]problem.Problem, error) {
	sizes, err := r.sizes(j.Peers)
	if err != nil {
		return nil, err
	}
	return r.router.Reconcile(sizes.routes(j.Routes), prune)
}

// host returns what a plan must know about this machine, so that no route into the tunnel covers it.
// Where the mesh is off there are no such routes.
func (k *kernel) host() (h plan.Host, err error) {
	if k.mesh == nil {
		return h, nil
	}
	addrs, err := k.router.Addresses()
	if err == nil {
		h.Connected, err = k.router.Connected()
	}
	if err != nil {
		return plan.Host{Unknown: true}, err
	}
	h.Addrs = slices.Concat(addrs, k.config.DNS.givenAddrs())
	return h, nil
}
