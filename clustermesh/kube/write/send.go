package write

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"strait.io/strait/clustermesh/written"
)

// Send carries out one operation by a field manager, and returns the API server's answer, nil after a
// deletion. It is for programs that do not lead a cluster; others have a Part.
func Send(ctx context.Context, client dynamic.Interface, manager string, o written.Op) (*unstructured.Unstructured, error) {
	kind, listed := written.Kind(o.Kind)
	if !listed {
		return nil, fmt.Errorf("%s: strait does not write this kind", o)
	}
	kind.Resource.Version = cmp.Or(o.Version, kind.Resource.Version)
	name := o.Object.GetName()
	var api dynamic.ResourceInterface = client.Resource(kind.Resource)
	if ns := o.Object.GetNamespace(); ns != "" {
		api = client.Resource(kind.Resource).Namespace(ns)
	}
	switch o.Verb {
	case written.Delete:
		uid, background := o.Object.GetUID(), metav1.DeletePropagationBackground
		// The UID is a precondition, so that it never deletes another object of the same name.
		return nil, api.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	case written.Adopt:
		return api.Patch(ctx, name, types.JSONPatchType, o.Patch, metav1.PatchOptions{FieldManager: manager})
	}
	body, err := bodyOf(o, kind)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Verb == written.Create:
		return api.Create(ctx, body, metav1.CreateOptions{FieldManager: manager})
	case o.Verb == written.Update:
		return api.Update(ctx, body, metav1.UpdateOptions{FieldManager: manager})
	case o.Verb == written.ApplyStatus && o.NoSubresource:
		// By another manager: one that applies only the status would give up the spec.
		return api.Apply(ctx, name, body, metav1.ApplyOptions{FieldManager: written.StatusManager, Force: o.Force})
	case o.Verb == written.ApplyStatus:
		return api.ApplyStatus(ctx, name, body, metav1.ApplyOptions{FieldManager: manager, Force: o.Force})
	}
	return api.Apply(ctx, name, body, metav1.ApplyOptions{FieldManager: manager, Force: o.Force})
}

// bodyOf returns the object to send: the fields that the operation writes, without empty ones, whose
// ownership an apply would claim.
func bodyOf(o written.Op, kind written.Row) (*unstructured.Unstructured, error) {
	u, is := o.Object.(*unstructured.Unstructured)
	if !is {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", o.Target(), err)
		}
		u = &unstructured.Unstructured{Object: fields}
	}
	u.SetGroupVersionKind(kind.GroupVersionKind())
	if t := u.GetCreationTimestamp(); t.IsZero() {
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	}
	if o.Verb == written.ApplyStatus {
		unstructured.RemoveNestedField(u.Object, "spec")
	} else {
		unstructured.RemoveNestedField(u.Object, "status")
	}
	return u, nil
}

// Outdated reports whether a write failed because what is known of the objects is out of date.
func Outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
