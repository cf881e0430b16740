package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	mcs "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"
)

// Client is a connection to an API server. Make one with Connect.
type Client struct {
	// Host is the API server's address, for people.
	Host string
	// REST is for other clients of the same API server.
	REST *rest.Config

	contact   *contact
	core      kubernetes.Interface
	mcs       mcs.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery *discovery.DiscoveryClient
}

// Connect reads the kubeconfig, or where the path is empty the account of the pod that it runs in. It opens
// no connection.
func Connect(kubeconfig string) (Client, error) {
	var cfg *rest.Config
	var err error
	if kubeconfig == "" {
		cfg, err = rest.InClusterConfig()
		if err != nil {
			return Client{}, fmt.Errorf("source.kubernetes.kubeconfig: %w; outside a pod, name a kubeconfig file", err)
		}
	} else if cfg, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return Client{}, fmt.Errorf("source.kubernetes.kubeconfig: read %s: %w", kubeconfig, err)
	}
	return NewClient(cfg)
}

// NewClient makes a Client of a configuration, which it does not keep.
func NewClient(cfg *rest.Config) (Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "strait"
	// Watches are few and long, so there is nothing to limit here.
	cfg.QPS, cfg.Burst = -1, 0
	bounded(cfg)
	plain := rest.CopyConfig(cfg)
	heard := &contact{}
	cfg.Wrap(heard.wrap)
	// Built-in kinds come in a form that costs a fifth of JSON to decode; custom resources know only JSON.
	builtin := rest.CopyConfig(cfg)
	builtin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	builtin.ContentType = runtime.ContentTypeProtobuf
	c := Client{Host: cfg.Host, REST: plain, contact: heard}
	var err error
	if c.core, err = kubernetes.NewForConfig(builtin); err != nil {
		return c, fmt.Errorf("make API client: %w", err)
	}
	if c.mcs, err = mcs.NewForConfig(cfg); err != nil {
		return c, fmt.Errorf("make API client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return c, fmt.Errorf("make API client: %w", err)
	}
	if c.metadata, err = metadata.NewForConfig(cfg); err != nil {
		return c, fmt.Errorf("make API client: %w", err)
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfig(cfg); err != nil {
		return c, fmt.Errorf("make API client: %w", err)
	}
	return c, nil
}

// lister lists and watches one kind.
type lister struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// resource is what typed clients have in common.
type resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

func listerOf[L runtime.Object](r resource[L]) lister {
	return lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) },
		watch: r.Watch,
	}
}

func (c Client) metadataOf(r schema.GroupVersionResource) lister {
	return listerOf(c.metadata.Resource(r))
}

func (c Client) dynamicOf(r schema.GroupVersionResource) lister {
	return listerOf(c.dynamic.Resource(r))
}
