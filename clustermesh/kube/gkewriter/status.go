package gkewriter

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"strait.io/strait/clustermesh/gke"
)

// say applies a status to an object, unless the object has changed since it was read. A definition
// of the kind may have no room for all of it; then it is written once, not in every pass.
func (w *Writer) say(ctx context.Context, s gke.ToSay) error {
	if was, is := w.said[s.UID]; is && was.ResourceVersion == s.ResourceVersion && same(was, s) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.Status)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	o.SetAPIVersion(s.APIVersion)
	o.SetKind(s.Kind)
	o.SetName(s.Name)
	o.SetResourceVersion(s.ResourceVersion)
	version, err := schema.ParseGroupVersion(s.APIVersion)
	if err != nil {
		return err
	}
	resource := version.WithResource(schema.ParseGroupResource(s.Resource).Resource)
	now, err := w.dynamic.Resource(resource).Namespace(s.Namespace).ApplyStatus(ctx, s.Name, o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return err
	}
	if w.said == nil {
		w.said = map[string]gke.ToSay{}
	}
	s.ResourceVersion = now.GetResourceVersion()
	w.said[s.UID] = s
	return nil
}

// same compares statuses without their times, which a definition without room for them forgets.
func same(a, b gke.ToSay) bool {
	undated := func(s gke.ToSay) []metav1.Condition {
		out := slices.Clone(s.Status.Conditions)
		for i := range out {
			out[i].LastTransitionTime = metav1.Time{}
		}
		return out
	}
	return a.Status.VIP == b.Status.VIP && slices.Equal(undated(a), undated(b))
}
