// Package writer brings the objects in a cluster's API server to the state that package mcs wants,
// while this daemon leads its cluster.
//
// Input is the latest mcs.View; outputs are writes by server-side apply, Events, and Problems.
// It is a shell around client-go and decides nothing: mcs.Diff decides what to write, service by
// service. It must not know gossip or the kernel.
package writer

import (
	"context"
	"sync"
	"time"

	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
)

// Writer writes one cluster's objects. Make it with New; Run it for as long as the daemon leads.
type Writer struct {
	*write.Part
	submit    notify.Signal // a new view was submitted
	freeEvery time.Duration // see the constant; shorter in tests

	mu      sync.Mutex
	view    *mcs.View
	backlog *backlog // of the current term; nil while not leading
}

// Progress is how far the writer has got with many services that changed at once, such as those of
// a cluster's first leader.
type Progress struct {
	// Done services out of Total have been tried: they were written, or writing them failed.
	Done, Total int
	Began       time.Time
}

// New makes a Writer. It opens no connection until Run.
func New(e *write.Engine) *Writer {
	return &Writer{Part: e.Part(written.Imports), submit: notify.New(), freeEvery: freeEvery}
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

func (w *Writer) latest() *mcs.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

func (w *Writer) forget() {
	w.Forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backlog = nil
}
