package mirrorer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/written"
)

// Resource is what client-go has for each kind.
type Resource[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// Write creates, updates or deletes an object.
func Write[T metav1.Object](ctx context.Context, to Resource[T], manager string, verb written.Verb, o T) (err error) {
	switch verb {
	case written.Create:
		_, err = to.Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
	case written.Update:
		_, err = to.Update(ctx, o, metav1.UpdateOptions{FieldManager: manager})
	case written.Delete:
		err = to.Delete(ctx, o.GetName(), only(o))
	}
	return err
}

// only deletes an object and no other of its name.
func only(o metav1.Object) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))}
}

// Passes reports whether a write failed because what is known of the objects is out of date.
func Passes(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
