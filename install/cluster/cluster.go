// Package cluster does at an API server what `strait install`, `strait clusterset` and `strait dns` are for:
// applies and deletes objects, waits for DaemonSets, reads what a cluster is and asks its daemons.
//
// Inputs are a kubeconfig's context and rendered objects; outputs are objects at the server and what was changed.
// It must not know flags, nor how text is printed, nor what the chart says.
package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// Manager is the field manager of what is installed.
const Manager = "strait-install"

// Names of what is installed, beside the chart's.
const (
	Daemon     = "strait"
	Tunnel     = "strait-tunnel"
	SecretName = "strait-clusterset"
	configName = "strait"
	container  = "straitd"
)

// Options say which cluster.
type Options struct {
	// Kubeconfig is a file; empty is what kubectl would take.
	Kubeconfig string
	// Context of it; empty is the current one.
	Context string
	// Namespace is strait's.
	Namespace string
}

// Cluster is one cluster's API server.
type Cluster struct {
	// Context is its name in the kubeconfig.
	Context   string
	Namespace string
	rest      *rest.Config
	objects   dynamic.Interface
	kinds     meta.ResettableRESTMapper
}

// Open reads the kubeconfig. It asks the server nothing.
func Open(o Options) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig for context %q: %w", o.Context, err)
	}
	name := o.Context
	if raw, err := loader.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	// We ask in bursts, and then never again: the client's own brake would only make people wait.
	config.QPS = -1
	config.Timeout = 30 * time.Second
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", name, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", name, err)
	}
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(known))
	return &Cluster{Context: name, Namespace: o.Namespace, rest: config, objects: objects, kinds: kinds}, nil
}

// resource is the client for an object's kind, in the object's namespace where it has one.
func (c *Cluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	m, err := c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.kinds.Reset() // a CRD may have come since
		m, err = c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("find kind %s at the API server: %w", kind.Kind, err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.objects.Resource(m.Resource).Namespace(o.GetNamespace()), nil
	}
	return c.objects.Resource(m.Resource), nil
}

// poll asks until done, ctx ends, or an error that is not to be waited out.
func poll(ctx context.Context, every time.Duration, ask func() (done bool, err error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		done, err := ask()
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx) // a question that was cut short says nothing of its own
		}
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
