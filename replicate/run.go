package replicate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
)

// Config says what to replicate.
type Config struct {
	File File
	// Policies count besides the Services that the File lists.
	Policies []policy.Policy
	// Set tells the mirrors of this File from those of others: a DNS label.
	Set string
	// DryRun writes nothing.
	DryRun bool
	// Did is called for each write, with the id of its cluster; Skipped for each Service that is left out
	// of a cluster; Failed for what a cluster failed to do. They are not called at the same time.
	Did     func(cluster string, o written.Op)
	Skipped func(cluster string, s mirror.Skipped)
	Failed  func(error)
	// Log receives each request to an API server, what was read and what was decided; nil discards it.
	Log *slog.Logger
}

// Replicator replicates. Make one with New.
type Replicator struct {
	cfg      Config
	policies []policy.Policy
	servers  []*server
	skipped  map[string]bool // what was told, by cluster and text
	mu       sync.Mutex      // held while cfg's functions are called
}

// New reads the kubeconfigs. It contacts no API server. A kubeconfig that cannot be read is an error
// that Failed gets, and its cluster is one that does not answer.
func New(cfg Config) *Replicator {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &Replicator{cfg: cfg, policies: append(cfg.File.Policies(), cfg.Policies...), skipped: map[string]bool{}}
	for _, c := range cfg.File.Clusters {
		s, err := open(c, cfg.Log)
		if err != nil {
			cfg.Failed(err)
			s = &server{id: c.ID()}
		}
		r.servers = append(r.servers, s)
	}
	return r
}

// Once does one pass over all clusters. It returns an error if any cluster failed; the others are done
// all the same.
func (r *Replicator) Once(ctx context.Context) error {
	ctx = r.logged(ctx)
	known := make([]*mirror.Cluster, len(r.servers))
	errs := make([]error, len(r.servers))
	var g errgroup.Group
	for i, s := range r.servers {
		g.Go(func() error {
			if s.client == nil {
				return nil // New has reported it
			}
			c, err := s.read(ctx)
			if errs[i] = err; err == nil {
				known[i] = &c
			}
			return nil
		})
	}
	_ = g.Wait() // never fails
	silent := 0
	for i, err := range errs {
		if err != nil {
			r.cfg.Failed(err)
		}
		if known[i] == nil {
			silent++
		}
	}
	if failed := r.pass(ctx, known); silent+failed > 0 {
		return fmt.Errorf("%d of %d clusters could not be read, and %d writes failed; the rest was done, and what came from a cluster that could not be read stays", silent, len(r.servers), failed)
	}
	return nil
}

// pass writes what the clusters that are known should have, and returns how many writes failed.
func (r *Replicator) pass(ctx context.Context, known []*mirror.Cluster) (failed int) {
	if err := r.twins(known); err != nil {
		r.tell(func() { r.cfg.Failed(err) })
		return 1
	}
	unknown := map[string]bool{}
	var clusters []mirror.Cluster
	for i, s := range r.servers {
		if known[i] == nil {
			unknown[s.id] = true
		} else {
			clusters = append(clusters, *known[i])
		}
	}
	for i, s := range r.servers {
		if known[i] == nil {
			continue
		}
		plan := mirror.Wanted(r.cfg.Set, r.policies, clusters, *known[i])
		ops := mirror.Sign(mirror.Diff(r.cfg.Set, plan, *known[i], func(cluster string) bool { return unknown[cluster] }), Manager)
		if s.watched != nil { // otherwise, there is no later pass
			ops = s.retired.Due(ops, time.Now())
		}
		r.cfg.Log.Debug("planned", "cluster", s.id, "services", len(known[i].Services), "mirrors", len(plan.Mirrors),
			"leftOut", len(plan.Skipped), "writes", len(ops))
		failed += r.carryOut(ctx, s, plan, ops)
	}
	return failed
}

// logged makes client-go log requests to the Log.
func (r *Replicator) logged(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.FromSlogHandler(r.cfg.Log.Handler()))
}

// twins returns an error if two entries are one cluster: it would get mirrors of its own Services.
func (r *Replicator) twins(known []*mirror.Cluster) error {
	seen := map[string]string{}
	for i, s := range r.servers {
		if known[i] == nil || s.uid == "" {
			continue
		}
		if other := seen[s.uid]; other != "" {
			return fmt.Errorf("%s is the same cluster as %s: correct its kubeconfig or context; nothing is written", s.id, other)
		}
		seen[s.uid] = s.id
	}
	return nil
}

// carryOut writes to one cluster, and returns how many writes failed.
func (r *Replicator) carryOut(ctx context.Context, s *server, plan mirror.Plan, ops []written.Op) (failed int) {
	for _, skip := range plan.Skipped {
		if key := s.id + " " + fmt.Sprint(skip); !r.skipped[key] {
			r.skipped[key] = true
			r.tell(func() { r.cfg.Skipped(s.id, skip) })
		}
	}
	var uncreated written.Uncreated
	for _, o := range ops {
		if uncreated.Blocks(o) {
			continue
		}
		if !r.cfg.DryRun {
			if err := s.do(ctx, o); err != nil {
				uncreated.Failed(o)
				if ctx.Err() != nil || write.Outdated(err) && s.watched != nil {
					continue // the next pass sees what is there
				}
				failed++
				r.tell(func() { r.cfg.Failed(err) })
				continue
			}
		}
		r.tell(func() { r.cfg.Did(s.id, o) })
	}
	return failed
}

func (r *Replicator) tell(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// failing reports each failure of a watch once a minute: client-go tries again every few seconds, for each
// kind of object.
func (r *Replicator) failing() func(error) {
	var last time.Time
	return func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if time.Since(last) > time.Minute {
			last = time.Now()
			r.cfg.Failed(err)
		}
	}
}

const (
	// quiet and patience gather changes that come together.
	quiet, patience = 50 * time.Millisecond, 500 * time.Millisecond
	// again is how often a pass is done although nothing changed: what failed is tried again.
	again = 15 * time.Second
)

// Watch follows all changes until ctx ends; then it returns nil.
func (r *Replicator) Watch(ctx context.Context) error {
	ctx = r.logged(ctx)
	changed := notify.New()
	var errs []error
	for _, s := range r.servers {
		if s.client != nil {
			errs = append(errs, s.follow(ctx, changed, r.failing()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for ctx.Err() == nil {
		known := make([]*mirror.Cluster, len(r.servers))
		for i, s := range r.servers {
			if s.client == nil {
				continue
			}
			if c, err := s.seen(); err == nil {
				known[i] = &c
			}
		}
		r.pass(ctx, known)
		notify.Await(ctx, changed, again, quiet, patience)
	}
	for _, s := range r.servers {
		s.running.Wait()
	}
	return nil
}
