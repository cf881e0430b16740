package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// LeaseName is the name of the Lease that the leader holds, in strait's own namespace.
const LeaseName = written.LeaderLease

// Timing of the Lease. A leader that dies is replaced after leaseDuration at most. A leader that
// cannot renew gives up after renewDeadline, before another node can take over.
const (
	leaseDuration = 6 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = time.Second
)

// LeaderConfig names the Lease, and the node that is a candidate for it.
type LeaderConfig struct {
	Client Client
	// Namespace holds the Lease.
	Namespace string
	Node      clustermesh.NodeName
	// Term, if not nil, is called for each term of leadership, one at a time, and works until its
	// context is done.
	Term func(context.Context) error
	// Log may be nil.
	Log *slog.Logger
}

// Leader is a candidate for the one node that writes the cluster's record and objects. Make one
// with NewLeader, then Run it. Two leaders for a moment do no harm, because they write the same.
type Leader struct {
	cfg     LeaderConfig
	log     *slog.Logger
	changed notify.Signal
	terms   sync.WaitGroup
	term    sync.Mutex // held while cfg.Term runs

	mu        sync.Mutex
	candidate bool
	candidacy notify.Signal      // after candidate changed
	end       context.CancelFunc // of the election, while there is one
	is        bool
	since     uint64
	renewed   time.Time        // start of the last request that got or renewed the Lease
	refused   map[string]error // why the API server refuses the Lease, by verb
}

// NewLeader makes a Leader that does not lead until it runs.
func NewLeader(cfg LeaderConfig) *Leader {
	l := &Leader{cfg: cfg, log: cfg.Log, changed: notify.New(), refused: map[string]error{}, candidate: true, candidacy: notify.New()}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	return l
}

// Leader reports whether this node holds the Lease, and since when, in Unix milliseconds; since
// grows with each term. It never blocks. The clock decides whether an unrenewed Lease is lost.
func (l *Leader) Leader() (is bool, since uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is && l.candidate && time.Since(l.renewed) < leaseDuration-retryPeriod, l.since
}

// SetCandidate sets whether this node is a candidate, as it is at first. If it no longer is, it gives up
// the Lease, and its Problems go.
func (l *Leader) SetCandidate(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.candidate == is {
		return
	}
	l.candidate = is
	if !is && l.end != nil {
		l.end()
	}
	l.candidacy.Poke()
	l.changed.Poke()
}

// election waits until this node is a candidate. The context that it returns ends when the node no
// longer is. It is nil if ctx ended.
func (l *Leader) election(ctx context.Context) context.Context {
	for {
		l.mu.Lock()
		if l.end != nil {
			l.end() // of the last one, which is over
		}
		candidate := l.candidate
		if candidate {
			ctx, l.end = context.WithCancel(ctx)
		} else {
			clear(l.refused)
		}
		l.mu.Unlock()
		if candidate {
			return ctx
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.candidacy:
		}
	}
}

// Problems returns why this node cannot be elected.
func (l *Leader) Problems() (out []clustermesh.Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, verb := range []string{"get", "create", "update"} {
		if err := l.refused[verb]; err != nil {
			out = append(out, clustermesh.Problem{
				Code:    problem.LeaseRefused,
				Object:  "Lease " + l.cfg.Namespace + "/" + LeaseName,
				Message: fmt.Sprintf("%v: this node cannot lead, and if none can, the cluster's exports stay as they were", err),
				Try:     "create the namespace and apply strait's Role in it (strait upgrade does both), or correct source.kubernetes.namespace",
			})
		}
	}
	return out
}

// Changed receives a value after Leader or Problems changed. It is for one receiver.
func (l *Leader) Changed() <-chan struct{} { return l.changed }

// Run takes part in elections until ctx is done, while the node is a candidate. Then it gives up the Lease,
// so that another node can lead at once, and returns nil.
func (l *Leader) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		while := l.election(ctx)
		if while == nil {
			break
		}
		l.compete(while)
	}
	l.terms.Wait()
	return nil
}

// lead begins a term that ends with ctx.
func (l *Leader) lead(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is, l.since = true, max(l.since+1, uint64(time.Now().UnixMilli()))
	l.log.Info("this node leads the cluster", "lease", l.cfg.Namespace+"/"+LeaseName)
	if l.cfg.Term != nil {
		l.terms.Go(func() { l.work(ctx) })
	}
	l.changed.Poke()
}

// work runs one term's work. It first waits for the work of the term before, which may still be
// ending.
func (l *Leader) work(ctx context.Context) {
	l.term.Lock()
	defer l.term.Unlock()
	if err := l.cfg.Term(ctx); err != nil && ctx.Err() == nil {
		l.log.Error("the leader's work failed", "err", err)
	}
}

// stop ends a term, whose ctx has ended already.
func (l *Leader) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is = false
	l.log.Info("this node no longer leads the cluster", "lease", l.cfg.Namespace+"/"+LeaseName)
	l.changed.Poke()
}

// tried notes how a request for the Lease went. Only Forbidden and NotFound count as refusals. Any
// other error clears an earlier refusal, as success does: the Source reports an unreachable API
// server.
func (l *Leader) tried(verb string, err error) {
	if !errors.IsForbidden(err) && !errors.IsNotFound(err) {
		err = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if (err == nil) != (l.refused[verb] == nil) {
		l.changed.Poke()
	}
	l.refused[verb] = err
}

// renew notes that the Lease was got or renewed by a request that began at a time: it is this
// node's until leaseDuration after that.
func (l *Leader) renew(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = began
}

func (l *Leader) lastRenewed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}
