package writer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
)

const (
	// workers is how many services are written at a time. No service is written by two workers at
	// once. The engine bounds how many requests they send at once.
	workers = write.MaxRequests
	// maxRounds bounds the consecutive rounds of Diff and writes for one service: a new import
	// takes four.
	maxRounds = 6
	// retryMin and retryMax bound the back-off of a service that cannot be written.
	retryMin = 200 * time.Millisecond
	retryMax = time.Minute
)

// term is the work of one term of leadership.
type term struct {
	*Writer
	api     mcs.API       // what is served in this term
	lost    notify.Signal // a version may not be served any more
	store   *store
	queue   workqueue.TypedRateLimitingInterface[clustermesh.ServiceName]
	backlog *backlog // the queue's storage
	clock   clock
	pace    *pace      // of rewrites
	stated  *pace      // of conditions that say how a service fares
	bounds  newsBounds // of Events about that
	watches []*watch
	begun   atomic.Bool // everything has been read
}

func newTerm(w *Writer, api mcs.API) (*term, error) {
	t := &term{Writer: w, api: api, lost: notify.New(), store: newStore(), backlog: newBacklog()}
	t.paced(time.Now)
	type (
		name    = clustermesh.ServiceName
		storage = workqueue.TypedQueueConfig[name]
		delays  = workqueue.TypedDelayingQueueConfig[name]
	)
	t.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[name](retryMin, retryMax),
		workqueue.TypedRateLimitingQueueConfig[name]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
			delays{Queue: workqueue.NewTypedWithConfig(storage{Queue: t.backlog})})})
	var err error
	t.watches, err = t.watchAll()
	return t, err
}

// paced has the clock of all bounds in time.
func (t *term) paced(c clock) {
	t.clock, t.pace, t.stated, t.bounds = c, newPace(rewriteEvery, rewriteBurst, c), newPace(restateEvery, restateBurst, c), newNewsBounds(c)
}

// run watches, and starts to write once everything has been read: an object that has not been read
// yet must not be taken for absent.
func (t *term) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
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
	filled, report := t.begin(), newReporter(t)
	for range workers {
		wg.Go(func() { t.work(ctx, report) })
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

// synced waits until all kinds have been read and a view was submitted; false if ctx is done first.
func (t *term) synced(ctx context.Context) bool {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		all := true
		for _, w := range t.watches {
			if w.synced.Load() {
				t.Report(w.kind, nil)
			} else if !w.refused.Load() {
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

// begin queues all services, as a backlog if they are many, and returns the view that they were
// queued from. Compared with the empty view, mcs.KnowsMore is always true.
func (t *term) begin() mcs.View {
	t.begun.Store(true)
	return t.fill(mcs.View{})
}

// news queues services whose objects have changed in the API server. It queues nothing before
// everything has been read, because begin queues all services: queued here, they would wait among
// the changes, with every real change behind them.
func (t *term) news(names []clustermesh.ServiceName) {
	if !t.begun.Load() {
		return
	}
	for _, s := range names {
		t.queue.Add(s)
	}
}

// again queues all services: a kind that could not be read before now can.
func (t *term) again() {
	if v := t.latest(); v != nil && t.begun.Load() {
		for _, s := range mcs.Changed(mcs.View{}, *v) {
			t.queue.Add(s)
		}
	}
}

// fill queues the services for which the latest view may want something different, and returns that
// view. old is the view that the queue was last filled from.
func (t *term) fill(old mcs.View) mcs.View {
	now := *t.latest()
	names := mcs.Changed(old, now)
	if mcs.KnowsMore(old, now) {
		names = append(names, t.store.names()...) // objects waiting to be pruned
		slices.SortFunc(names, clustermesh.ServiceName.Compare)
		names = slices.Compact(names)
	}
	t.backlog.expect(names, time.Now())
	for _, s := range names {
		t.queue.Add(s)
	}
	return now
}

func (t *term) work(ctx context.Context, report *reporter) {
	for {
		s, stop := t.queue.Get()
		if stop || ctx.Err() != nil {
			return
		}
		err := errors.Join(t.sync(ctx, s), report.problems(ctx, s))
		report.fares(ctx, s)
		if err == nil {
			t.queue.Forget(s)
		} else if ctx.Err() == nil {
			t.Log.Debug("will retry", "service", s, "err", err)
			t.queue.AddRateLimited(s)
		}
		if errors.Is(err, write.ErrStopped) {
			t.backlog.untried(s)
		} else {
			t.backlog.tried(s, err == nil)
		}
		t.queue.Done(s)
	}
}

// sync writes for one service until nothing is left to write. It uses one view throughout. A later
// view queues the service again. If each round took the latest view, a view that changes faster
// than it can be written would look like another writer undoing our writes.
func (t *term) sync(ctx context.Context, s clustermesh.ServiceName) error {
	var problems []clustermesh.Problem
	var err error
	view, oneOfMany := *t.latest(), t.backlog.among(s)
	rewrite := sync.OnceValue(func() bool { return t.pace.take(s) })
	restate := sync.OnceValue(func() bool { return t.stated.take(s) })
	for round := 0; ; round++ {
		var ops []written.Op
		have := t.store.have(s)
		have.API = t.known()
		ops, problems = mcs.Diff(view, s, have, t.clock())
		if mcs.Restates(ops) && !restate() {
			have.Hold = true
			ops, problems = mcs.Diff(view, s, have, t.clock())
			t.queue.AddAfter(s, restateEvery)
		}
		later := have.Rewrites(ops) && !rewrite()
		if later {
			ops = have.WithoutRewrites(ops)
			t.queue.AddAfter(s, rewriteEvery)
		}
		if len(ops) == 0 {
			break
		}
		if round == maxRounds {
			problems = append(problems, unsettled(ops[0]))
			err = errors.New("objects keep changing")
			break
		}
		var failed []clustermesh.Problem
		var refused string
		failed, refused, err = t.writeAll(ctx, ops, oneOfMany)
		if refused != "" || !later && err == nil {
			t.refusedSlices(s, refused)
		}
		if err != nil {
			problems = append(problems, failed...)
			break
		}
	}
	if !errors.Is(err, write.ErrStopped) {
		t.Report(s.String(), problems)
	}
	return err
}

// writeAll carries out operations in order. After a failure it goes on with the rest, but deletes
// nothing whose replacement is not there. For a service of a backlog (oneOfMany) it makes only
// Events that are warnings: the conditions of ten thousand imports already say that each is ready,
// and twenty thousand Events would drown all others. Refused is the API server's answer to the
// first slice that it refused.
func (t *term) writeAll(ctx context.Context, ops []written.Op, oneOfMany bool) (problems []clustermesh.Problem, refused string, err error) {
	var failed []written.Op
	for _, o := range ops {
		if o.Verb == written.Delete && slices.ContainsFunc(failed, func(f written.Op) bool { return mcs.Replaces(f, o) }) {
			continue
		}
		writeErr := t.writeAfter(ctx, o, failed)
		if ctx.Err() != nil || errors.Is(writeErr, write.ErrStopped) {
			return problems, "", write.ErrStopped
		}
		if writeErr == nil {
			t.createEvents(ctx, o, oneOfMany)
			continue
		}
		failed, err = append(failed, o), writeErr
		if o.Slice() != nil {
			refused = cmp.Or(refused, refusal(writeErr))
		}
		if p, is := problemOf(o, writeErr); is {
			problems = append(problems, p)
		}
	}
	return problems, refused, err
}

// refusedSlices remembers the API server's refusal of a slice, for the import's status.
func (t *term) refusedSlices(s clustermesh.ServiceName, refusal string) {
	if trouble := t.store.have(s).Trouble; trouble.RefusedSlices != refusal {
		trouble.RefusedSlices = refusal
		t.store.setTrouble(s, trouble)
	}
}

// writeAfter is write after others failed. No slice loses the endpoints that those should have
// moved.
func (t *term) writeAfter(ctx context.Context, o written.Op, failed []written.Op) error {
	if o.Verb != written.Delete && o.Verb != written.Apply || o.Slice() == nil || len(failed) == 0 {
		return t.write(ctx, o)
	}
	// The store has only a slice's checksum. The role lets the leader list slices, not get one.
	list, err := t.Core.EndpointSlices(o.Slice().Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + o.Slice().Name})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].UID != o.Slice().UID {
		return t.write(ctx, o)
	}
	if o.Verb == written.Apply {
		return t.write(ctx, mcs.Shrink(&list.Items[0], o, failed))
	}
	if next, do := mcs.Retire(&list.Items[0], failed); do {
		return t.write(ctx, next)
	}
	return nil
}
