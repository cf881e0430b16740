package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/tools/cache"
)

// Informer returns an informer of the objects of a kind, in all namespaces, that a label selector
// matches; false for a kind that has none here.
func (c *Clients) Informer(kind, selector string) (i cache.SharedIndexInformer, is bool) {
	switch kind {
	case "Namespace":
		return informer(c.Namespaces(), &corev1.Namespace{}, selector), true
	case "Service":
		return informer(c.Services(""), &corev1.Service{}, selector), true
	case "EndpointSlice":
		return informer(c.EndpointSlices(""), &discoveryv1.EndpointSlice{}, selector), true
	case "Ingress":
		return informer(c.Ingresses(""), &networkingv1.Ingress{}, selector), true
	}
	return nil, false
}

func informer[T object, L runtime.Object](c *gentype.ClientWithList[T, L], empty T, selector string) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return c.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return c.Watch(ctx, o)
		},
	}, empty, 0, cache.Indexers{})
}
