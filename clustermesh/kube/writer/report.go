package writer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/internal/problem"
)

// reporter reports Problems of Services, exports, and imports without conditions as Events.
type reporter struct {
	*term
	mu       sync.Mutex
	reported map[clustermesh.ServiceName][]clustermesh.Problem // reported in this term
	// fared has the services of which no condition says how they fare, and the reason in the last look.
	fared map[clustermesh.ServiceName]string
}

func newReporter(t *term) *reporter {
	return &reporter{term: t, reported: map[clustermesh.ServiceName][]clustermesh.Problem{}, fared: map[clustermesh.ServiceName]string{}}
}

// fares makes an Event of the Service if how it fares changed, and no condition has that. Of many services
// at a time, none gets one.
func (t *reporter) fares(ctx context.Context, s clustermesh.ServiceName) {
	if !t.Leading() {
		return
	}
	e, ails := t.latest().LocalNews(s, t.known())
	t.mu.Lock()
	was := t.fared[s]
	if delete(t.fared, s); e.Reason != "" {
		t.fared[s] = e.Reason
	}
	t.mu.Unlock()
	if e.Reason == was || e.Reason == "" || !ails && was == "" || t.backlog.among(s) || !t.bounds.take(s) {
		return
	}
	if e.Change = e.Reason + " from the start"; was != "" { // the next leader finds the former, too
		e.Change = fmt.Sprintf("%s after %s, at %d", e.Reason, was, t.clock().Truncate(time.Minute).Unix())
	}
	t.serviceEvent(ctx, s, e)
}

// resources are the kinds of objects whose Problems become Events, by their names in the Refs of Problems. The
// versions are those that package kube reads.
var resources = map[string]schema.GroupVersionResource{
	"Service":                           corev1.SchemeGroupVersion.WithResource("services"),
	mcsv1beta1.ServiceExportKindName:    mcsVersion.WithResource(mcsv1beta1.ServiceExportPluralName),
	"ServiceExport.net.gke.io":          {Group: "net.gke.io", Version: "v1", Resource: "serviceexports"},
	"ServiceExport.multicluster.k8s.io": {Group: "multicluster.k8s.io", Version: "v1alpha1", Resource: "serviceexports"},
	"ServiceImport.multicluster.k8s.io": {Group: "multicluster.k8s.io", Version: "v1alpha1", Resource: "serviceimports"},
}

// problems makes an Event for each new Problem of a service. It returns an error if that should be
// retried.
func (t *reporter) problems(ctx context.Context, s clustermesh.ServiceName) error {
	now := t.latest().EventProblems(s, t.known())
	read := map[problem.Ref]*unstructured.Unstructured{}
	for _, p := range t.fresh(s, now) {
		if !t.Leading() {
			return write.ErrStopped
		}
		o, was := read[p.Ref]
		var err error
		if !was {
			o, err = t.object(ctx, s, p)
			read[p.Ref] = o
		}
		if err == nil && o != nil {
			err = t.event(ctx, o, p)
		}
		if err != nil {
			return fmt.Errorf("report %s as an Event: %w", p.Object, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.reported, s); len(now) > 0 {
		t.reported[s] = now
	}
	return nil
}

// object reads the object of a Problem: its UID must be in the Event, because kubectl describe
// shows the Events with the object's UID. It returns nil if there is no object to attach an Event
// to.
func (t *reporter) object(ctx context.Context, s clustermesh.ServiceName, p clustermesh.Problem) (*unstructured.Unstructured, error) {
	resource, known := resources[p.Ref.Kind]
	if !known {
		return nil, nil
	}
	if resource.Group == mcsVersion.Group {
		resource.Version = groupVersion(t.api.Exports).Version
	}
	o, err := t.Dynamic.Resource(resource).Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // its Problems are gone with it
	}
	return o, err
}

// fresh returns the Problems in now that were not reported yet in this term.
func (t *reporter) fresh(s clustermesh.ServiceName, now []clustermesh.Problem) (out []clustermesh.Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range now {
		if !slices.Contains(t.reported[s], p) {
			out = append(out, p)
		}
	}
	return out
}

func (t *reporter) event(ctx context.Context, o *unstructured.Unstructured, p clustermesh.Problem) error {
	_, err := t.Core.Events(o.GetNamespace()).Create(ctx, problemEvent(o, p), metav1.CreateOptions{})
	switch {
	// Reported already, perhaps by an earlier leader, or the namespace is going away.
	case apierrors.IsAlreadyExists(err) || nobodyReads(err):
		return nil
	// Refused, perhaps by an admission webhook.
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		t.Log.Warn("event refused", "code", p.Code, "what", p.String(), "err", err)
		return nil
	}
	return err
}
