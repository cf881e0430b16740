package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

const (
	// quiet and patience gather changes that come together.
	quiet, patience = 50 * time.Millisecond, time.Second
	// stint bounds how long a pass writes before it looks again. Thousands of new objects take minutes,
	// and those that are there follow their sources meanwhile.
	stint = 5 * time.Second
	// Again is how often a pass is done although nothing changed: what failed is tried again.
	Again = 15 * time.Second
)

// Work is what one writer gives to Passes: the difference between what is wanted and what is there. Its
// methods are called one at a time, by Run.
type Work[V any] interface {
	// Needed reports whether there may be something to write or to delete. Until then, what strait
	// wrote is not read.
	Needed(ctx context.Context, view func() V) bool
	// Decide returns what to write, in order. There is what strait wrote before, by the rows of the
	// writer.
	Decide(view V, there []metav1.Object, now time.Time) []written.Op
	// Wrote is called after each write that was tried.
	Wrote(ctx context.Context, o written.Op, err error)
	// Done is called when all writes have been tried. It writes the statuses, and returns the Problems
	// of the whole pass.
	Done(ctx context.Context, view V) []clustermesh.Problem
	// Forget drops what is out of date when the next term begins.
	Forget()
}

// Passes lets a writer go over all of its objects whenever something has changed. Make it with
// NewPasses; Run it for as long as the daemon leads.
type Passes[V any] struct {
	*Part
	work    Work[V]
	changed notify.Signal // asks for another pass

	mu   sync.Mutex
	view func() V // nil until one was submitted
}

// NewPasses makes Passes for a writer. It starts nothing.
func NewPasses[V any](p *Part, w Work[V]) *Passes[V] {
	return &Passes[V]{Part: p, work: w, changed: notify.New()}
}

// Submit sets what is known; the latest counts. Run calls view when it needs it.
func (p *Passes[V]) Submit(view func() V) {
	p.mu.Lock()
	p.view = view
	p.mu.Unlock()
	p.changed.Poke()
}

func (p *Passes[V]) submitted() func() V {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view
}

// Run writes until ctx is done, and begins when all that strait wrote has been read.
func (p *Passes[V]) Run(ctx context.Context) error {
	defer p.forget()
	for view := p.submitted(); view == nil || !p.work.Needed(ctx, view); view = p.submitted() {
		if !notify.Await(ctx, p.changed, Again, quiet, patience) {
			return nil
		}
	}
	seen, err := p.watch(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	if !cache.WaitForCacheSync(ctx.Done(), seen.synced...) {
		return nil
	}
	var took time.Duration
	for more := true; more; more = notify.Await(ctx, p.changed, Again, max(quiet, took), max(patience, 5*took)) {
		if there := seen.objects(); ctx.Err() == nil {
			took = p.Pass(ctx, p.submitted(), there)
		}
	}
	return nil
}

// Pass goes over all objects once, and returns how long it took to decide what to write.
func (p *Passes[V]) Pass(ctx context.Context, view func() V, there []metav1.Object) time.Duration {
	start := time.Now()
	v := view()
	ops := p.work.Decide(v, there, time.Now())
	took := time.Since(start)
	p.carryOut(ctx, v, ops)
	return took
}

// carryOut writes what is missing. After a stint without a failure the next pass goes on, and the last one
// reports what has been made. After a failure the next pass would begin with the same, so this one goes
// on.
func (p *Passes[V]) carryOut(ctx context.Context, view V, ops []written.Op) {
	var uncreated written.Uncreated
	start, failing := time.Now(), false
	for _, o := range ops {
		if !failing && time.Since(start) > stint {
			p.changed.Poke()
			return
		}
		if uncreated.Blocks(o) {
			continue
		}
		_, err := p.Do(ctx, o)
		if ctx.Err() != nil || errors.Is(err, ErrStopped) {
			return
		}
		if err != nil {
			failing = true
			uncreated.Failed(o)
		}
		p.work.Wrote(ctx, o, err)
	}
	p.Report("", p.work.Done(ctx, view))
}

// forget drops what is out of date when the next term begins, or is for the next leader to find.
func (p *Passes[V]) forget() {
	p.mu.Lock()
	p.view = nil
	p.mu.Unlock()
	p.work.Forget()
	p.Forget()
}

// seen is what informers have read.
type seen struct {
	informers []cache.SharedIndexInformer
	synced    []cache.InformerSynced
	running   sync.WaitGroup
}

// watch starts to watch what strait wrote, by the rows of the writer, until ctx is done.
func (p *Passes[V]) watch(ctx context.Context) (*seen, error) {
	poke := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { p.changed.Poke() }, UpdateFunc: func(any, any) { p.changed.Poke() }, DeleteFunc: func(any) { p.changed.Poke() },
	}
	s := &seen{}
	for _, row := range written.Own(p.name) {
		i, is := p.Core.Informer(row.Kind, row.Watched())
		if !is {
			return nil, fmt.Errorf("strait does not watch the kind %s", row.Kind)
		}
		if _, err := i.AddEventHandler(poke); err != nil {
			return nil, err
		}
		s.informers, s.synced = append(s.informers, i), append(s.synced, i.HasSynced)
	}
	for _, i := range s.informers {
		s.running.Go(func() { i.RunWithContext(ctx) })
	}
	return s, nil
}

// stop waits until the informers have ended.
func (s *seen) stop() { s.running.Wait() }

func (s *seen) objects() (out []metav1.Object) {
	for _, i := range s.informers {
		for _, o := range i.GetStore().List() {
			out = append(out, o.(metav1.Object))
		}
	}
	return out
}

// Refused returns the Problem of a write that failed; none if the next pass does better.
func Refused(write string, err error) []clustermesh.Problem {
	if err == nil || Outdated(err) || errors.Is(err, ErrStopped) {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.WriteRefused, Object: write, Message: err.Error(), Try: "it is tried again; see what the API server says",
	}}
}
