package kube

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// Pauses between attempts to reach the API server. client-go's own grow to a minute, so a cluster
// could notice a minute late that its API server is back.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 5 * time.Second
)

// watch keeps the objects of one kind. It is the store that client-go's reflector writes to. A
// shared informer would hold every object twice while it is delivered, and wait up to a minute
// after an outage.
type watch struct {
	kind  object.Kind
	node  clustermesh.NodeName
	dirty func()
	gone  func() // called when the API server does not know the resource; may be nil

	mu      sync.Mutex
	objects []object.Kept // sorted by name; a map would take more memory than most of the objects
	st      state
	fresh   bool // something changed since the last look
}

// named is an object of the API server, or an object.Kept.
type named interface {
	GetNamespace() string
	GetName() string
}

func byName[A, B named](a A, b B) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// state is the state of a watch.
type state struct {
	kind object.Kind
	// synced: all objects have been read once.
	synced bool
	// absent is since when the API server has answered that it does not serve the kind; zero if it
	// serves it, or has not answered.
	absent time.Time
	// err is the error of the last attempt, nil if it succeeded; since is when attempts began to
	// fail.
	err   error
	since time.Time
}

func newWatch(k object.Kind, node clustermesh.NodeName, dirty func()) *watch {
	return &watch{kind: k, node: node, dirty: dirty, st: state{kind: k}, fresh: true}
}

// into inserts the objects into objs, sorted by name, and reports whether they are all that exist.
func (w *watch) into(objs *object.Objects) (all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.objects {
		objs.Insert(o)
	}
	return w.st.synced
}

// look returns the state of the watch, and whether anything changed since the last look.
func (w *watch) look() (state, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.fresh
	w.fresh = false
	return w.st, fresh
}

func (w *watch) state() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.st
}

// run watches until ctx is done.
func (w *watch) run(ctx context.Context, c Client, version object.Version) {
	source, empty, err := c.listerOf(w.kind, version)
	if err != nil {
		w.attempted(ctx, err) // possible only with a bad configuration, which Connect refuses
		return
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			objects, err := source.List(ctx, w.selected(o))
			w.attempted(ctx, err)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			events, err := source.Watch(ctx, w.selected(o))
			w.attempted(ctx, err)
			return events, err
		},
	}
	cache.NewReflectorWithOptions(lw, empty, w, cache.ReflectorOptions{
		Name: w.kind.Resource,
		Backoff: &wait.Backoff{Duration: firstPause, Cap: lastPause, Factor: 2, Jitter: 0.5,
			Steps: int(math.Ceil(float64(lastPause) / float64(firstPause)))},
	}).RunWithContext(ctx)
}

func (w *watch) selected(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector = w.kind.Selector
	if w.kind.NodeField != "" {
		o.FieldSelector = fields.OneTermEqualSelector(w.kind.NodeField, string(w.node)).String()
	}
	return o
}

// attempted notes how a request went.
func (w *watch) attempted(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsTimeout(err) {
		return // we are stopping, or client-go will list again
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.st.err == nil {
		w.st.since = time.Now()
	}
	changed := fmt.Sprint(err) != fmt.Sprint(w.st.err)
	w.st.err = err
	if changed {
		w.dirty()
	}
	if changed && w.gone != nil && apierrors.IsNotFound(err) {
		w.gone()
	}
}

// lost reports whether the API server does not know the resource, in the version that is watched.
func (w *watch) lost() bool { return apierrors.IsNotFound(w.state().err) }

// served notes whether the API server serves the kind at all.
func (w *watch) served(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case yes && !w.st.absent.IsZero():
		w.st.absent, w.fresh = time.Time{}, true
	case !yes && w.st.absent.IsZero():
		w.st.absent, w.fresh = time.Now(), true
	default:
		return
	}
	w.dirty()
}

// changed notes that the objects changed. The lock is held.
func (w *watch) changed() {
	w.fresh = true
	w.dirty()
}

// Add implements cache.ReflectorStore.
func (w *watch) Add(o any) error { return w.Update(o) }

// Update implements cache.ReflectorStore. Most updates change only what strait does not read, such
// as a node's heartbeat, and are not passed on.
func (w *watch) Update(o any) error {
	id, ok := o.(named)
	if !ok {
		return fmt.Errorf("%T has no name", o)
	}
	kept, err := w.keep(o)
	switch {
	case err != nil:
		return err
	case kept == nil:
		return w.Delete(id)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at, there := slices.BinarySearchFunc(w.objects, kept, byName)
	switch {
	case !there:
		w.objects = slices.Insert(w.objects, at, kept)
	case reflect.DeepEqual(w.objects[at], kept):
		return nil
	default:
		w.objects[at] = kept
	}
	w.changed()
	return nil
}

// Delete implements cache.ReflectorStore. It does nothing if the object was not kept.
func (w *watch) Delete(o any) error {
	id, ok := o.(named)
	if !ok {
		return fmt.Errorf("%T has no name", o)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, there := slices.BinarySearchFunc(w.objects, id, byName); there {
		w.objects = slices.Delete(w.objects, at, at+1)
		w.changed()
	}
	return nil
}

// Replace implements cache.ReflectorStore. The objects given are all that exist.
func (w *watch) Replace(all []any, _ string) error {
	objects := make([]object.Kept, 0, len(all))
	for _, o := range all {
		kept, err := w.keep(o)
		if err != nil {
			return err
		}
		if kept != nil {
			objects = append(objects, kept)
		}
	}
	slices.SortFunc(objects, byName)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects, w.st.synced = slices.Clone(objects), true
	w.changed()
	return nil
}

// keep returns what is kept of an object, nil to drop the object. The Transformer may have reduced
// it already.
func (w *watch) keep(o any) (object.Kept, error) {
	if o == nil {
		return nil, nil
	}
	kept, ok := w.kind.Keep(o, w.node)
	if !ok {
		return nil, fmt.Errorf("%T is not one of %s", o, w.kind.Resource)
	}
	return kept, nil
}

// Resync implements cache.ReflectorStore.
func (*watch) Resync() error { return nil }

// Transformer implements cache.TransformingStore. While a long list arrives, client-go holds only
// what will be kept of each object. Replace then gets the results of this function.
func (w *watch) Transformer() cache.TransformFunc {
	return func(o any) (any, error) { return w.keep(o) }
}
