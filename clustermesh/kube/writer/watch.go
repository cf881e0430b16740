package writer

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	mcsinformers "sigs.k8s.io/mcs-api/pkg/client/informers/externalversions/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// informers watch what strait writes, and no more: a cluster's own Services and slices are not its business here.
func (w *Writer) informers() map[string]cache.SharedIndexInformer {
	labelled := func(selector string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) { o.LabelSelector = selector }
	}
	none := cache.Indexers{}
	return map[string]cache.SharedIndexInformer{
		"serviceimports": mcsinformers.NewServiceImportInformer(w.mcs, metav1.NamespaceAll, 0, none),
		"serviceexports": mcsinformers.NewServiceExportInformer(w.mcs, metav1.NamespaceAll, 0, none),
		"services": coreinformers.NewFilteredServiceInformer(w.core, metav1.NamespaceAll, 0, none,
			labelled(object.LabelManagedBy+"="+object.ManagedBy)),
		"endpointslices": discoveryinformers.NewFilteredEndpointSliceInformer(w.core, metav1.NamespaceAll, 0, none,
			labelled(discoveryv1.LabelManagedBy+"="+object.SliceManager)),
	}
}

// handler keeps the store and queues the services whose objects changed.
func (t *term) handler() cache.ResourceEventHandler {
	queue := func(s clustermesh.ServiceName, ours bool) {
		if ours {
			t.queue.Add(s)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { queue(t.store.put(obj.(metav1.Object))) },
		UpdateFunc: func(was, obj any) {
			before, ours := serviceOf(was.(metav1.Object))
			now, _ := serviceOf(obj.(metav1.Object))
			if ours && before != now { // somebody changed its labels
				queue(t.store.drop(was.(metav1.Object)))
			}
			queue(t.store.put(obj.(metav1.Object)))
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			t.store.deleting(obj.(metav1.Object), false)
			queue(t.store.drop(obj.(metav1.Object)))
		},
	}
}

// watchFailed says why a kind cannot be read. Before all kinds were read nothing is written.
func (t *term) watchFailed(kind string) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		if t.informers[kind].HasSynced() || ctx.Err() != nil {
			t.log.Debug("watch", "kind", kind, "error", err)
			return // it goes on from where it was
		}
		p := clustermesh.Problem{
			Object:  "API server",
			Message: fmt.Sprintf("list %s: %v: no ServiceImports are written", kind, err),
			Try:     "see whether the API server can be reached",
		}
		switch {
		case apierrors.IsNotFound(err):
			p.Try = "install the CRDs of the Multi-Cluster Services API (v1beta1)"
		case apierrors.IsForbidden(err):
			p.Try = "let strait's account list and watch " + kind + ": see the ClusterRole in install"
		}
		t.report(kind, []clustermesh.Problem{p})
	}
}
