package writer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
)

const (
	// workers write for several services at a time; one service is never in two hands. The flow
	// bounds how many do at once.
	workers = flowMax
	// maxRounds bounds the rounds of Diff and writes for one service in a row: a new import takes four.
	maxRounds = 6
	// retryMin and retryMax bound the back-off of a service that cannot be written.
	retryMin = 200 * time.Millisecond
	retryMax = time.Minute
)

// errStopped ends the work of a term that is over.
var errStopped = errors.New("not leading")

// term is the work of one term of leadership.
type term struct {
	*Writer
	store   *store
	queue   workqueue.TypedRateLimitingInterface[clustermesh.ServiceName]
	backlog *backlog // the queue's storage
	watches []*watch
	begun   atomic.Bool // everything was read
}

func newTerm(w *Writer) *term {
	t := &term{Writer: w, store: newStore(), backlog: newBacklog()}
	type (
		name    = clustermesh.ServiceName
		storage = workqueue.TypedQueueConfig[name]
		delays  = workqueue.TypedDelayingQueueConfig[name]
	)
	t.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[name](retryMin, retryMax),
		workqueue.TypedRateLimitingQueueConfig[name]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
			delays{Queue: workqueue.NewTypedWithConfig(storage{Queue: t.backlog})})})
	t.watches = t.watchAll()
	return t
}

// run watches, and writes once everything was read: what is not read yet is not absent.
func (t *term) run(ctx context.Context) error {
	// client-go logs by the context, else to standard error.
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.FromSlogHandler(t.log.Handler())))
	var wg sync.WaitGroup
	defer func() {
		cancel()
		t.queue.ShutDown()
		wg.Wait()
	}()
	for _, w := range t.watches {
		wg.Go(func() { w.run(ctx) })
	}
	if !t.synced(ctx) {
		return nil
	}
	filled, tell := t.begin(), &teller{term: t, told: map[clustermesh.ServiceName][]clustermesh.Problem{}}
	for range workers {
		wg.Go(func() { t.work(ctx, tell) })
	}
	wg.Go(func() { t.freeNames(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.submit:
			filled = t.fill(filled)
		}
	}
}

// synced waits until all kinds were read and there is a view; false if ctx is done before.
func (t *term) synced(ctx context.Context) bool {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		all := true
		for _, w := range t.watches {
			if w.synced.Load() {
				t.report(w.kind, nil)
			} else {
				all = false
			}
		}
		if all && t.latest() != nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// begin queues all services, as a backlog where they are many, and returns the view that they are queued from. A
// view always knows more than none.
func (t *term) begin() mcs.View {
	t.begun.Store(true)
	return t.fill(mcs.View{})
}

// news queues services of which the API server says something new. Before everything was read it does not: begin
// takes all that there are. They would wait among the changes, and all changes behind them.
func (t *term) news(names []clustermesh.ServiceName) {
	if !t.begun.Load() {
		return
	}
	for _, s := range names {
		t.queue.Add(s)
	}
}

// fill queues the services for which the latest view may say something new, and returns that view; old is the one
// that the queue was last filled from.
func (t *term) fill(old mcs.View) mcs.View {
	now := *t.latest()
	names := mcs.Changed(old, now)
	if mcs.KnowsMore(old, now) {
		names = append(names, t.store.names()...) // what waits to be pruned
		slices.SortFunc(names, clustermesh.ServiceName.Compare)
		names = slices.Compact(names)
	}
	t.backlog.expect(names, time.Now())
	for _, s := range names {
		t.queue.Add(s)
	}
	return now
}

func (t *term) work(ctx context.Context, tell *teller) {
	for {
		s, stop := t.queue.Get()
		if stop || ctx.Err() != nil {
			return
		}
		err := errors.Join(t.sync(ctx, s), tell.problems(ctx, s))
		if err == nil {
			t.queue.Forget(s)
		} else if !errors.Is(err, errStopped) {
			t.log.Debug("tried again", "service", s, "err", err)
			t.queue.AddRateLimited(s)
		}
		t.backlog.tried(s, err == nil)
		t.queue.Done(s)
	}
}

// sync writes for one service until there is nothing left to write. It holds on to one view: of a later one the queue
// tells, and with a view that changes faster than it is written the rounds would say nothing of other writers.
func (t *term) sync(ctx context.Context, s clustermesh.ServiceName) error {
	var problems []clustermesh.Problem
	var err error
	view, oneOfMany := *t.latest(), t.backlog.among(s)
	for round := 0; ; round++ {
		var ops []mcs.Op
		ops, problems = mcs.Diff(view, s, t.store.have(s), time.Now())
		if len(ops) == 0 {
			break
		}
		if round == maxRounds {
			problems = append(problems, unsettled(ops[0]))
			err = errors.New("unsettled")
			break
		}
		var failed []clustermesh.Problem
		if failed, err = t.writeAll(ctx, ops, oneOfMany); err != nil {
			problems = append(problems, failed...)
			break
		}
	}
	if !errors.Is(err, errStopped) {
		t.report(s.String(), problems)
	}
	return err
}

// writeAll writes in order. After a failure it goes on with the rest, but deletes nothing: what was
// to replace it may not be there. Of one of many services it tells only what is wrong: that each of
// ten thousand imports is ready is in their conditions, and twenty thousand Events would drown all
// others.
func (t *term) writeAll(ctx context.Context, ops []mcs.Op, oneOfMany bool) (problems []clustermesh.Problem, failed error) {
	for _, o := range ops {
		if o.Verb == mcs.Delete && failed != nil {
			continue
		}
		if ctx.Err() != nil || !t.leading() {
			return problems, errStopped
		}
		err := t.write(ctx, o)
		if ctx.Err() != nil {
			return problems, errStopped
		}
		if err == nil {
			t.tell(ctx, o, oneOfMany)
			continue
		}
		failed = err
		if p, is := problemOf(o, err); is {
			problems = append(problems, p)
		}
	}
	return problems, failed
}
