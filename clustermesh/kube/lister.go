package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"strait.io/strait/clustermesh/kube/builtin"
	"strait.io/strait/clustermesh/object"
)

// lister lists and watches one kind, in all namespaces.
type lister interface {
	List(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// listerOf returns the lister of a version of a kind, and an empty object of the type that it
// returns.
func (c Client) listerOf(k object.Kind, v object.Version) (lister, runtime.Object, error) {
	resource := k.GroupVersion(v).WithResource(k.GroupResource().Resource)
	switch {
	case k.MetadataOnly:
		return loosely(c.metadata.Resource(resource)), &metav1.PartialObjectMetadata{}, nil
	case v.Object == nil:
		return loosely(c.dynamic.Resource(resource)), &unstructured.Unstructured{}, nil
	}
	cfg := rest.CopyConfig(c.reading)
	if !k.Custom {
		cfg = builtin.Protobuf(cfg)
	}
	cfg.GroupVersion, cfg.NegotiatedSerializer, cfg.APIPath = new(resource.GroupVersion()), codecs, "/apis"
	if resource.Group == "" {
		cfg.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("make API client for %s: %w", k.Resource, err)
	}
	return typed{client, resource.Resource}, v.Object, nil
}

// codecs read and write the Go types of the kinds.
var codecs = func() runtime.NegotiatedSerializer {
	s := object.Scheme()
	for _, gv := range append(s.PrioritizedVersionsAllGroups(), schema.GroupVersion{Version: "v1"}) {
		metav1.AddToGroupVersion(s, gv)
	}
	return serializer.NewCodecFactory(s).WithoutConversion()
}()

// typed reads the objects of a resource into their Go types.
type typed struct {
	client   *rest.RESTClient
	resource string
}

// List implements lister.
func (t typed) List(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return t.client.Get().Resource(t.resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Get()
}

// Watch implements lister.
func (t typed) Watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	o.Watch = true
	return t.client.Get().Resource(t.resource).VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
}

// resource has the methods that the clients for objects without Go types have in common.
type resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// loosely makes a lister from one of these clients.
func loosely[L runtime.Object](r resource[L]) lister { return loose[L]{r} }

type loose[L runtime.Object] struct{ resource[L] }

// List implements lister.
func (l loose[L]) List(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return l.resource.List(ctx, o)
}
