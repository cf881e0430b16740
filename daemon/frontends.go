package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strait.io/strait/daemon/turn"
	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/problem"
)

// frontends is the part that maintains the socket load balancer.
type frontends struct{ kernel *kernel }

func (frontends) name() string         { return "socklb" }
func (frontends) again() time.Duration { return 0 }

func (frontends) same(a, b want) bool {
	return datapath.SameList(a.Frontends, b.Frontends) && a.Own.Equal(b.Own)
}

// put also removes unwanted frontends once the caution is Exact. The load balancer itself adds before it
// removes, and may need the room of old frontends for new ones. No other part depends on an
// unwanted frontend.
func (f frontends) put(ctx context.Context, j job) ([]problem.Problem, error) {
	lb, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	fs := j.Frontends
	if j.caution == turn.GrowOnly {
		have, err := lb.Frontends()
		if err != nil {
			return nil, err
		}
		fs = datapath.Grow(have, fs)
	}
	refused, err := lb.SetOwn(j.Own, j.caution == turn.Exact)
	if err != nil {
		return refused, err
	}
	problems, err := lb.Reconcile(fs, j.caution == turn.Exact)
	return append(refused, problems...), err
}

// open returns the load balancer. If it is not open yet, open loads, attaches and tests it.
func (f frontends) open(ctx context.Context) (*socklb.LB, error) {
	if lb := f.kernel.balancer(); lb != nil {
		return lb, nil
	}
	cfg := f.kernel.config.BPF.socklb()
	cfg.Log = f.kernel.log.With("part", "socklb")
	lb, err := socklb.Open(cfg)
	if err != nil {
		return nil, err
	}
	if err := lb.SelfTest(ctx); errors.Is(err, socklb.ErrOutside) {
		f.kernel.log.Warn("hooks are attached, but this process is outside their cgroup and cannot test them", "cgroup", lb.Cgroup())
	} else if errors.Is(err, socklb.ErrNoRoom) {
		f.kernel.log.Warn("hooks are attached, and the maps are too full to test them", "cgroup", lb.Cgroup())
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("self-test: %w", err), lb.Close())
	}
	f.kernel.log.Info("hooks are attached", "cgroup", lb.Cgroup(), "pins", lb.Pins())
	f.kernel.mu.Lock()
	defer f.kernel.mu.Unlock()
	f.kernel.lb = lb
	f.kernel.balancing.Poke()
	return lb, nil
}

// balancer returns the load balancer, or nil before it has been opened.
func (k *kernel) balancer() *socklb.LB {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lb
}
