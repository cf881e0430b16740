package mirrorer

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"strait.io/strait/clustermesh/policy/mirror"
)

// writeWithin bounds the wait for an API server that does not answer.
const writeWithin = 30 * time.Second

// Do carries out one write. Manager is the field manager, and the origin of namespaces.
func Do(ctx context.Context, client kubernetes.Interface, manager string, o mirror.Op) (err error) {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	create, update := metav1.CreateOptions{FieldManager: manager}, metav1.UpdateOptions{FieldManager: manager}
	switch {
	case o.Namespace != "":
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace, Annotations: map[string]string{mirror.AnnotationFrom: manager}}}
		_, err = client.CoreV1().Namespaces().Create(ctx, ns, create)
	case o.Service != nil:
		x := client.CoreV1().Services(o.Service.Namespace)
		switch o.Verb {
		case mirror.Create:
			_, err = x.Create(ctx, o.Service, create)
		case mirror.Update:
			_, err = x.Update(ctx, o.Service, update)
		case mirror.Delete:
			err = x.Delete(ctx, o.Service.Name, only(o.Service.ObjectMeta))
		}
	case o.Slice != nil:
		x := client.DiscoveryV1().EndpointSlices(o.Slice.Namespace)
		switch o.Verb {
		case mirror.Create:
			_, err = x.Create(ctx, o.Slice, create)
		case mirror.Update:
			_, err = x.Update(ctx, o.Slice, update)
		case mirror.Delete:
			err = x.Delete(ctx, o.Slice.Name, only(o.Slice.ObjectMeta))
		}
	}
	return err
}

// only deletes an object and no other of its name.
func only(m metav1.ObjectMeta) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(m.UID))}
}

// Passes reports whether a write failed because what is known of the objects is out of date.
func Passes(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
