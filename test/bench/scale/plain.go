package scale

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plainServices is how many Services plain creates.
const plainServices = 300

// plain returns how many seconds the API server takes to create a Service that strait does not
// handle, while nothing else happens, at the cluster's current size. To allocate a ClusterIP the
// API server lists those of all Services, so ten thousand Services take minutes, whatever client
// creates them.
func (w *world) plain(ctx context.Context) (seconds float64, err error) {
	const ns = "plain"
	services := w.core.CoreV1().Services(ns)
	if err := w.namespace(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, err
	}
	n := min(plainServices, w.services)
	each := func(do func(ctx context.Context, name string) error) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(writers)
		for i := range n {
			g.Go(func() error { return do(ctx, serviceName(i)) })
		}
		return g.Wait()
	}
	start := time.Now()
	err = each(func(ctx context.Context, name string) error {
		_, err := services.Create(ctx, plainService(name), metav1.CreateOptions{})
		return err
	})
	took := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("create plain service: %w", err)
	}
	err = each(func(ctx context.Context, name string) error {
		return services.Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err != nil {
		return 0, fmt.Errorf("delete plain service: %w", err)
	}
	return took.Seconds() / float64(n), nil
}

func plainService(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
}
