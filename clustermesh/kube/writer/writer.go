// Package writer makes the objects in a cluster's API server equal what package mcs wants of them, while this
// daemon leads its cluster.
//
// Input is the latest mcs.View; outputs are writes by server-side apply, Events, and Problems. Shell: client-go.
// It decides nothing: what to write is mcs.Diff's word, service by service. It must not know gossip or the kernel.
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
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/internal/notify"
)

// Config says where to write.
type Config struct {
	// REST is the API server and the account. Its rate limits are replaced.
	REST *rest.Config
	// Leading is asked right before each write: nothing is written while it is false. Nil is always true.
	Leading func() bool
	// Log may be nil.
	Log *slog.Logger

	freeEvery time.Duration // of tests, for freeEvery
}

// Writer writes one cluster's objects. Make it with New; Run it for as long as the daemon leads.
type Writer struct {
	config  Config
	log     *slog.Logger
	core    kubernetes.Interface
	mcs     mcsclient.Interface
	dynamic dynamic.Interface
	submit  notify.Signal // a view waits

	mu       sync.Mutex
	view     *mcs.View
	problems map[string][]clustermesh.Problem // by what they are about: a service, a kind
	writes   map[Write]uint64
	backlog  *backlog // of the term; nil while not leading
}

// Progress is how far the writer has come with many services that are news at once, such as a first leader's.
type Progress struct {
	// Done of Total services are written, or could not be.
	Done, Total int
	Began       time.Time
}

// Write counts what kind of write was tried.
type Write struct {
	Verb   mcs.Verb
	Kind   string
	Failed bool
}

// New makes a Writer that opens nothing until it runs.
func New(c Config) (*Writer, error) {
	cfg := rest.CopyConfig(c.REST)
	cfg.QPS = -1 // how much the API server can take it says itself, by its priority and fairness
	flow := newFlow()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{flow, next} })
	// Deprecated values in exported Services are for their owners to see, not for our log.
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	w := &Writer{
		config: c, log: c.Log, submit: notify.New(),
		problems: map[string][]clustermesh.Problem{}, writes: map[Write]uint64{},
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	var errs [3]error
	// Built-in kinds come in a form that costs a fifth of JSON to decode; custom resources know only JSON.
	builtin := rest.CopyConfig(cfg)
	builtin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	builtin.ContentType = runtime.ContentTypeProtobuf
	w.core, errs[0] = kubernetes.NewForConfig(builtin)
	w.mcs, errs[1] = mcsclient.NewForConfig(cfg)
	w.dynamic, errs[2] = dynamic.NewForConfig(cfg)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	return w, nil
}

// Submit says what is to be from now on; the latest word wins. It may be called at any time, leading or not.
// Before the first call nothing is written. The caller must not change the view afterwards.
func (w *Writer) Submit(v mcs.View) {
	w.mu.Lock()
	w.view = &v
	w.mu.Unlock()
	w.submit.Poke()
}

// Run writes for one term of leadership: until ctx is done, then it returns nil. It may be called again for the
// next term, never twice at a time.
func (w *Writer) Run(ctx context.Context) error {
	t := newTerm(w)
	w.mu.Lock()
	w.backlog = t.backlog
	w.mu.Unlock()
	defer w.forget()
	return t.run(ctx)
}

// Problems are what stands in the way of writing now. Empty while not leading.
func (w *Writer) Problems() []clustermesh.Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []clustermesh.Problem
	for _, ps := range w.problems {
		out = append(out, ps...)
	}
	return clustermesh.SortProblems(out)
}

// Progress says how much of many services is written; false while no more than a few are to be.
func (w *Writer) Progress() (Progress, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.backlog == nil {
		return Progress{}, false
	}
	p := w.backlog.progress()
	return p, p.Total > 0
}

// Unwritten is how many services have objects that this leader has yet to write, or could not. It is 0 while
// not leading.
func (w *Writer) Unwritten() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.backlog == nil {
		return 0
	}
	return w.backlog.unfinished()
}

// Writes are the writes tried since New, Events not among them.
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

func (w *Writer) count(o mcs.Op, err error) {
	w.log.Debug("write", "what", o.String(), "error", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[Write{o.Verb, o.Kind(), err != nil}]++
}

// report replaces the Problems about one thing, and logs what is new.
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
			w.log.Warn("problem", "what", p.String())
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
