package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"strait.io/strait/daemon/turn"
	"strait.io/strait/internal/problem"
)

const (
	// mendEvery is how often the mender looks at the load balancer.
	mendEvery = time.Second
	// mendShare bounds what looking costs: of the time, 1 of mendShare+1. With 100,000 backends, it
	// makes the mender look every few seconds.
	mendShare = 200
	// mendLogPause is how long a repeated change is not logged again.
	mendLogPause = time.Minute
)

// pacer knows how long the last looks took.
type pacer struct {
	took [3]time.Duration
	n    int
}

// pauseAfter returns how long to wait after a look that took so long. The shortest of the last looks
// counts: a longer one waited for a busy machine, which must not keep what is broken from being mended.
func (p *pacer) pauseAfter(took time.Duration) time.Duration {
	p.took[p.n%len(p.took)] = took
	p.n++
	shortest := slices.Min(p.took[:min(p.n, len(p.took))])
	return min(max(mendEvery, mendShare*shortest), turn.Resync)
}

// mended has what the mender found.
type mended struct {
	mu     sync.Mutex
	err    error
	last   string // what was changed when it was last logged,
	logged time.Time
}

// mender looks whether another program changed the load balancer's links, pins or maps, and mends
// them, until ctx is done. It does not wait for turns, and turns do not wait for it for long.
func (k *kernel) mender(ctx context.Context) error {
	var pace pacer
	wait := time.NewTimer(mendEvery)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
		}
		began := time.Now()
		if lb := k.balancer(); lb != nil {
			changed, err := lb.Mend()
			if k.mended.note(changed, err, began) {
				k.log.Warn("another program changed the socket load balancer: put back", "changed", changed, "pins", lb.Pins(), "cgroup", lb.Cgroup())
			}
		}
		wait.Reset(pace.pauseAfter(time.Since(began)))
	}
}

// note notes the result of a look. It reports whether to log it.
func (m *mended) note(changed []string, err error, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	if len(changed) == 0 {
		return false
	}
	what := fmt.Sprint(changed)
	if what == m.last && now.Before(m.logged.Add(mendLogPause)) {
		return false
	}
	m.last, m.logged = what, now
	return true
}

// problems reports what could not be put back.
func (m *mended) problems() (out []problem.Problem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, err := range flatten(m.err) {
		text, try, _ := strings.Cut(err.Error(), "; ")
		out = append(out, problem.Problem{Code: problem.BalancerChanged, Object: "socklb",
			Message: "another program changed it, and it cannot be put back: " + text, Try: try})
	}
	return out
}
