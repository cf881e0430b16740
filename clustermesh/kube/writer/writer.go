// Package writer brings the objects in a cluster's API server to the state that package mcs wants,
// while this daemon leads its cluster.
//
// Input is the latest mcs.View; outputs are writes by server-side apply, Events, and Problems.
// It is a shell around client-go and decides nothing: mcs.Diff says what to write, service by
// service. It must not know gossip or the kernel.
package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
)

// Config says where to write.
type Config struct {
	// REST says how to reach the API server, and as which account. Its rate limits are replaced.
	REST *rest.Config
	// Leading is called right before each write; nothing is written while it returns false. Nil
	// means always true.
	Leading func() bool
	// Log may be nil.
	Log *slog.Logger

	freeEvery time.Duration // replaces the constant freeEvery in tests
}

// Writer writes one cluster's objects. Make it with New; Run it for as long as the daemon leads.
type Writer struct {
	config  Config
	log     *slog.Logger
	core    kubernetes.Interface
	rest    *rest.Config // for custom resources
	dynamic dynamic.Interface
	submit  notify.Signal // a new view was submitted

	mu       sync.Mutex
	view     *mcs.View
	problems map[string][]clustermesh.Problem // by subject: a service, or a kind
	writes   map[Write]uint64
	backlog  *backlog // of the current term; nil while not leading
}

// Progress is how far the writer has got with many services that changed at once, such as those of
// a cluster's first leader.
type Progress struct {
	// Done services out of Total have been tried: they were written, or writing them failed.
	Done, Total int
	Began       time.Time
}

// Write is a kind of write that was tried, and whether it failed. It is the key by which Writes
// counts.
type Write struct {
	Verb   written.Verb
	Kind   string
	Failed bool
}

// New makes a Writer. It opens no connection until Run.
func New(c Config) (*Writer, error) {
	cfg := rest.CopyConfig(c.REST)
	// No client-side limit: the API server's priority and fairness says how much it can take.
	cfg.QPS = -1
	flow := newFlow()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{flow, next} })
	// Warnings about deprecated values in exported Services are for the Services' owners, not for
	// our log.
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	w := &Writer{
		config: c, log: c.Log, submit: notify.New(),
		problems: map[string][]clustermesh.Problem{}, writes: map[Write]uint64{},
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	var errs [2]error
	// Built-in kinds come as protobuf, which costs a fifth as much to decode as JSON. Custom
	// resources come only as JSON.
	builtin := rest.CopyConfig(cfg)
	builtin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	builtin.ContentType = runtime.ContentTypeProtobuf
	w.core, errs[0] = kubernetes.NewForConfig(builtin)
	w.rest = cfg
	w.dynamic, errs[1] = dynamic.NewForConfig(cfg)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	return w, nil
}

// Submit sets the view to write from; the latest one wins. It can be called at any time, leading or
// not. Nothing is written before the first call. The caller must not change the view afterwards.
func (w *Writer) Submit(v mcs.View) {
	w.mu.Lock()
	w.view = &v
	w.mu.Unlock()
	w.submit.Poke()
}

// Run writes for one term of leadership. It returns nil when ctx is done. It can be called again
// for the next term, but not concurrently.
func (w *Writer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.runOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// runOnce writes until ctx is done, or the API server serves something else of the MCS API. Then
// all is read again, so nothing is written or deleted for what is not known.
func (w *Writer) runOnce(ctx context.Context) error {
	defer w.forget()
	api, ok := w.await(ctx)
	if !ok {
		return nil
	}
	t, err := newTerm(w, api)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.backlog = t.backlog
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		w.changes(ctx, api, t.lost)
	}()
	err = t.run(ctx)
	cancel()
	<-done
	return err
}

// Problems returns what prevents writing now; empty while not leading.
func (w *Writer) Problems() []clustermesh.Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []clustermesh.Problem
	for _, ps := range w.problems {
		out = append(out, ps...)
	}
	return clustermesh.SortProblems(out)
}

// Progress returns how much of a backlog of services is written; false while there is no backlog.
func (w *Writer) Progress() (Progress, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.backlog == nil {
		return Progress{}, false
	}
	p := w.backlog.progress()
	return p, p.Total > 0
}

// Unwritten returns how many services have objects that this leader has not written yet, or could
// not write; 0 while not leading.
func (w *Writer) Unwritten() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.backlog == nil {
		return 0
	}
	return w.backlog.unfinished()
}

// Writes returns how many writes of each kind were tried since New, not counting Events.
func (w *Writer) Writes() map[Write]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.writes)
}

func (w *Writer) latest() *mcs.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

func (w *Writer) count(o written.Op, err error) {
	w.log.Debug("write", "what", o.String(), "error", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[Write{o.Verb, o.Kind, err != nil}]++
}

// report replaces the Problems of one subject, and logs the new ones.
func (w *Writer) report(about string, ps []clustermesh.Problem) {
	w.mu.Lock()
	old := w.problems[about]
	if len(ps) == 0 {
		delete(w.problems, about)
	} else {
		w.problems[about] = ps
	}
	w.mu.Unlock()
	for _, p := range ps {
		if !slices.Contains(old, p) {
			w.log.Warn("problem", "code", p.Code, "what", p.String())
		}
	}
}

func (w *Writer) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.problems)
	w.backlog = nil
}

func (w *Writer) leading() bool { return w.config.Leading == nil || w.config.Leading() }
