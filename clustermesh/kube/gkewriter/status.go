package gkewriter

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"strait.io/strait/clustermesh/gke"
	"strait.io/strait/clustermesh/written"
)

// writeStatus applies a status to an object, unless the object has changed since it was read. A
// definition of the kind may have no room for all of it; then it is written once, not in every pass.
func (w *work) writeStatus(ctx context.Context, s gke.Status) error {
	if was, is := w.statuses[s.UID]; is && was.ResourceVersion == s.ResourceVersion && same(was, s) {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.Status)
	if err != nil {
		return err
	}
	version, err := schema.ParseGroupVersion(s.APIVersion)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	o.SetNamespace(s.Namespace)
	o.SetName(s.Name)
	o.SetResourceVersion(s.ResourceVersion)
	now, err := w.Do(ctx, written.Op{Verb: written.ApplyStatus, Kind: s.Row, Object: o, Version: version.Version, Force: true})
	if err != nil {
		return err
	}
	if w.statuses == nil {
		w.statuses = map[string]gke.Status{}
	}
	s.ResourceVersion = now.GetResourceVersion()
	w.statuses[s.UID] = s
	return nil
}

// same compares statuses without their times, which a definition without room for them forgets.
func same(a, b gke.Status) bool {
	undated := func(s gke.Status) []metav1.Condition {
		out := slices.Clone(s.Status.Conditions)
		for i := range out {
			out[i].LastTransitionTime = metav1.Time{}
		}
		return out
	}
	return a.Status.VIP == b.Status.VIP && slices.Equal(undated(a), undated(b))
}
