package writer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
)

// watch keeps the store up to date with one kind of objects. client-go's reflector writes to it: a
// shared informer would keep every object in full.
type watch struct {
	term   *term
	kind   string
	empty  runtime.Object
	source *cache.ListWatch
	synced atomic.Bool
	// optional is the name of a kind of another API group; empty for what must be read before
	// anything is written. refused is set when such a kind cannot be read.
	optional string
	refused  atomic.Bool
}

// resource has the methods that the typed clients have in common.
type resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// newWatch makes a watch of the objects that a label selector matches; all if it is empty.
func newWatch[L runtime.Object](t *term, kind string, empty runtime.Object, r resource[L], selector string) *watch {
	w := &watch{term: t, kind: kind, empty: empty}
	w.source = &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			list, err := r.List(ctx, o)
			if err != nil {
				w.failed(ctx, err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.LabelSelector = selector
			return r.Watch(ctx, o)
		},
	}
	return w
}

// watchAll makes the watches: of imports and exports, and of the Services and slices that strait
// writes. The cluster's own Services and slices are not needed here.
func (t *term) watchAll() ([]*watch, error) {
	imports, err := reader[mcsv1beta1.ServiceImport, mcsv1beta1.ServiceImportList](t.REST, groupVersion(t.api.Imports).WithKind(mcsv1beta1.ServiceImportKindName), mcsv1beta1.ServiceImportPluralName)
	if err != nil {
		return nil, err
	}
	exports, err := reader[mcsv1beta1.ServiceExport, mcsv1beta1.ServiceExportList](t.REST, groupVersion(t.api.Exports).WithKind(mcsv1beta1.ServiceExportKindName), mcsv1beta1.ServiceExportPluralName)
	if err != nil {
		return nil, err
	}
	out := []*watch{
		newWatch(t, "serviceimports", &mcsv1beta1.ServiceImport{}, imports, ""),
		newWatch(t, "serviceexports", &mcsv1beta1.ServiceExport{}, exports, ""),
		newWatch(t, "services", &corev1.Service{}, t.Core.Services(""), watched(written.Service)),
		newWatch(t, "endpointslices", &discoveryv1.EndpointSlice{}, t.Core.EndpointSlices(""), watched(written.EndpointSlice)),
	}
	for _, f := range foreignKinds {
		if _, is := t.api.Foreign[f.name]; !is {
			continue
		}
		w, err := f.watch(t, f)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// watched returns the selector of strait's own objects of a kind.
func watched(kind string) string {
	own := written.Own(written.Imports)
	return own[slices.IndexFunc(own, func(r written.Row) bool { return r.Kind == kind })].Watched()
}

func (w *watch) run(ctx context.Context) {
	cache.NewReflectorWithOptions(w.source, w.empty, w, cache.ReflectorOptions{Name: w.kind}).RunWithContext(ctx)
}

// Add implements cache.ReflectorStore.
func (w *watch) Add(o any) error { return w.Update(o) }

// Update implements cache.ReflectorStore.
func (w *watch) Update(o any) error {
	obj := o.(metav1.Object)
	trim(obj)
	w.term.news(w.term.store.changed(obj))
	return nil
}

func (w *watch) put(obj metav1.Object) {
	trim(obj)
	w.term.news(w.term.store.put(obj))
}

// Delete implements cache.ReflectorStore.
func (w *watch) Delete(o any) error {
	w.term.news(w.term.store.gone(o.(metav1.Object)))
	return nil
}

// Replace implements cache.ReflectorStore. The objects given are all that exist.
func (w *watch) Replace(all []any, version string) error {
	kind, there := w.empty.(metav1.Object), make(map[types.UID]bool, len(all))
	for _, o := range all {
		if id, was := o.(listed); was {
			there[types.UID(id)] = true
			continue
		}
		obj := o.(metav1.Object)
		there[obj.GetUID()] = true
		w.put(obj)
	}
	w.term.store.listed(kind, version)
	for _, gone := range w.term.store.missing(kind, there, version) {
		_ = w.Delete(gone)
	}
	if first := !w.synced.Swap(true); first && w.refused.Load() {
		w.term.Report(w.kind, nil)
		w.term.again()
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (*watch) Resync() error { return nil }

// listed is the UID of an object in a list. Transformer has already put the object into the store.
type listed types.UID

// Transformer implements cache.TransformingStore. A list arrives object by object, and client-go
// collects what this function returns until the list is complete. It returns UIDs only: when it
// returned the objects, a leader that started with 3,000 imports in place briefly took twice its
// memory at rest. Replace then removes the objects that are not in the list.
func (w *watch) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		obj := o.(metav1.Object)
		w.put(obj)
		return listed(obj.GetUID()), nil
	}
}

// failed reports why a kind cannot be read. Nothing is written before all kinds have been read.
func (w *watch) failed(ctx context.Context, err error) {
	if apierrors.IsNotFound(err) {
		w.term.lost.Poke()
	}
	if w.synced.Load() || ctx.Err() != nil {
		w.term.Log.Debug("list failed", "kind", w.kind, "err", err)
		return // what was read stays, and the reflector retries
	}
	unwritten := "no ServiceImports are written"
	if w.optional != "" {
		unwritten = "no " + w.optional + " is written"
		w.refused.Store(true)
	}
	p := clustermesh.Problem{
		Code:    problem.WriterCannotList,
		Object:  "API server",
		Message: fmt.Sprintf("list %s: %v: %s", w.kind, err, unwritten),
		Try:     "check that the API server can be reached",
	}
	switch {
	case apierrors.IsNotFound(err) && w.optional != "":
		return // its CRD has just gone
	case apierrors.IsNotFound(err):
		p.Try = "install the CRDs of the Multi-Cluster Services API : strait install"
	case apierrors.IsForbidden(err):
		p.Try = "allow strait's account to list and watch " + w.kind + ": see the ClusterRole in install/chart"
	}
	w.term.Report(w.kind, []clustermesh.Problem{p})
}
