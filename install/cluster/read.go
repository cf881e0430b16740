package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that are read. Client-go's typed clients would link every kind's types into the program.
var (
	configMaps  = resource("", "v1", "configmaps")
	secrets     = resource("", "v1", "secrets")
	namespaces  = resource("", "v1", "namespaces")
	nodes       = resource("", "v1", "nodes")
	pods        = resource("", "v1", "pods")
	daemonSets  = resource("apps", "v1", "daemonsets")
	deployments = resource("apps", "v1", "deployments")
)

// resource names a kind as it appears in the API server's paths.
func resource(group, version, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}

// get reads one object. It returns the API server's error unchanged.
func get[T any](ctx context.Context, c *Cluster, kind schema.GroupVersionResource, namespace, name string) (*T, error) {
	o, err := c.objects.Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out)
}

// list reads the objects that match a label selector; an empty selector matches all.
func list[T any](ctx context.Context, c *Cluster, kind schema.GroupVersionResource, namespace, selector string) ([]T, error) {
	all, err := c.objects.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	out := make([]T, len(all.Items))
	for i := range all.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.Items[i].Object, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
