// Package write carries out what the leader of a cluster writes to its API server: for every writer, it
// bounds the requests by what the API server can take, checks that this node still leads, counts what
// was tried, and keeps the Problems.
//
// Inputs are operations of package written; outputs are requests, counts and Problems. Writers that go
// over all of their objects at a time give a Work, and Passes does the rest; the writer of imports has
// a queue of its own. It is a shell around client-go and decides nothing. It must not know what the
// writers are for, nor gossip or the kernel.
package write

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/builtin"
	"strait.io/strait/clustermesh/written"
)

// ErrStopped means that this node may not write now: the term is over, or its Lease is renewed late.
var ErrStopped = errors.New("not leading")

// Config is where to write.
type Config struct {
	// REST is how to reach the API server, and as which account. Its rate limits are replaced.
	REST *rest.Config
	// Leading is called right before each write; nothing is written while it returns false. Nil
	// means always true.
	Leading func() bool
	// Log may be nil.
	Log *slog.Logger
}

// Engine writes to one cluster's API server. Make it with New, and give each writer a Part of it.
type Engine struct {
	// Core has the built-in kinds, Dynamic all kinds, and REST is for clients of custom resources.
	Core    *builtin.Clients
	Dynamic dynamic.Interface
	REST    *rest.Config

	config Config

	mu       sync.Mutex
	writes   map[Write]uint64
	problems map[subject][]clustermesh.Problem
}

// subject is what Problems are about: a service, a kind, or everything of a writer.
type subject struct {
	of    written.Writer
	about string
}

// Write is a kind of write that was tried, and whether it failed. It is the key by which Writes
// counts.
type Write struct {
	Verb   written.Verb
	Kind   string
	Failed bool
}

// New makes an Engine. It opens no connection.
func New(c Config) (*Engine, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	cfg := rest.CopyConfig(c.REST)
	// No client-side limit: the API server's priority and fairness limits what it can take.
	cfg.QPS = -1
	flow := newFlow()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{flow, next} })
	// Warnings about deprecated values in exported Services are for the Services' owners, not for
	// our log.
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	core, err1 := builtin.New(cfg)
	all, err2 := dynamic.NewForConfig(cfg)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	return &Engine{
		Core: core, Dynamic: all, REST: cfg, config: c,
		writes: map[Write]uint64{}, problems: map[subject][]clustermesh.Problem{},
	}, nil
}

// Runner is a writer. Its Run works for one term of leadership, until ctx is done.
type Runner interface {
	Run(ctx context.Context) error
}

// Run lets writers work for one term of leadership. It returns nil when ctx is done, or the first
// error of a writer after the others have stopped. It can be called again for the next term.
func (e *Engine) Run(ctx context.Context, writers ...Runner) error {
	// client-go uses the logger in the context; without one it logs to standard error.
	g, ctx := errgroup.WithContext(klog.NewContext(ctx, logr.FromSlogHandler(e.config.Log.Handler())))
	for _, w := range writers {
		g.Go(func() error { return w.Run(ctx) })
	}
	return g.Wait()
}

// Leading reports whether this node may write now.
func (e *Engine) Leading() bool { return e.config.Leading == nil || e.config.Leading() }

// Writes returns how many writes of each kind were tried since New, by all writers, not counting
// Events.
func (e *Engine) Writes() map[Write]uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.writes)
}

// Problems returns what prevents writing now, for all writers; empty while not leading.
func (e *Engine) Problems() []clustermesh.Problem {
	return e.problemsOf(func(written.Writer) bool { return true })
}

func (e *Engine) problemsOf(writer func(written.Writer) bool) (out []clustermesh.Problem) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s, ps := range e.problems {
		if writer(s.of) {
			out = append(out, ps...)
		}
	}
	return clustermesh.SortProblems(out)
}

// Part is one writer's share of the Engine.
type Part struct {
	*Engine
	// Log is the writer's.
	Log *slog.Logger

	name written.Writer
}

// Part returns the share of a writer.
func (e *Engine) Part(name written.Writer) *Part {
	return &Part{Engine: e, Log: e.config.Log.With("part", string(name)), name: name}
}

// Do carries out one operation and returns the API server's answer, nil after a deletion.
func (p *Part) Do(ctx context.Context, o written.Op) (*unstructured.Unstructured, error) {
	if ctx.Err() != nil || !p.Leading() {
		return nil, ErrStopped
	}
	if err := written.Covers(o); err != nil {
		return nil, err
	}
	answer, err := Send(ctx, p.Dynamic, written.Manager, o)
	p.Log.Debug("write", "what", o.String(), "err", err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes[Write{o.Verb, o.Kind, err != nil}]++
	return answer, err
}

// Problems returns those of this writer.
func (p *Part) Problems() []clustermesh.Problem {
	return p.problemsOf(func(w written.Writer) bool { return w == p.name })
}

// Report replaces the Problems of one subject, and logs the new ones.
func (p *Part) Report(about string, ps []clustermesh.Problem) {
	s := subject{p.name, about}
	p.mu.Lock()
	old := p.problems[s]
	if len(ps) == 0 {
		delete(p.problems, s)
	} else {
		p.problems[s] = ps
	}
	p.mu.Unlock()
	for _, problem := range ps {
		if !slices.Contains(old, problem) {
			p.Log.Warn("problem", "code", problem.Code, "what", problem.String())
		}
	}
}

// Forget drops all Problems of the writer: its term is over, and they are for the next leader to find.
func (p *Part) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.problems, func(s subject, _ []clustermesh.Problem) bool { return s.of == p.name })
}
