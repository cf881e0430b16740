package mirrorer

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
)

// writeWithin bounds the wait for an API server that does not answer.
const writeWithin = 30 * time.Second

// Do carries out one write. Manager is the field manager, and the origin of namespaces.
func Do(ctx context.Context, client kubernetes.Interface, manager string, o written.Op) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	switch {
	case o.Kind == written.Namespace:
		mirror.Sign([]written.Op{o}, manager)
		return Write(ctx, client.CoreV1().Namespaces(), manager, o.Verb, o.Object.(*corev1.Namespace))
	case o.Service() != nil:
		return Write(ctx, client.CoreV1().Services(o.Service().Namespace), manager, o.Verb, o.Service())
	case o.Slice() != nil:
		return Write(ctx, client.DiscoveryV1().EndpointSlices(o.Slice().Namespace), manager, o.Verb, o.Slice())
	}
	return nil
}

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
