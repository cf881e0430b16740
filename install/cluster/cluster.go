// Package cluster does the work of `strait install`, `strait clusterset` and `strait dns` at an API
// server: it applies and deletes objects, waits for DaemonSets, reads a cluster's identity and asks
// its daemons.
//
// Inputs are a kubeconfig context and rendered objects; outputs are objects at the server and a
// list of what changed. It must not know flags, how text is printed, or what the chart contains.
package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// Manager is the field manager of the installed objects.
const Manager = "strait-install"

// Names of installed objects and of the daemon's container. The chart has the same.
const (
	Daemon     = "strait"
	Leader     = "strait-leader"
	Tunnel     = "strait-tunnel"
	SecretName = "strait-clusterset"
	configName = "strait"
	container  = "straitd"
)

// Options name a cluster.
type Options struct {
	// Kubeconfig is a file; empty is the one that kubectl would use.
	Kubeconfig string
	// Context is a context in that file; empty is the current one.
	Context string
	// Namespace is strait's.
	Namespace string
	// Login is how to reach the API server, and as which user, where that differs from the file.
	Login clientcmd.ConfigOverrides
}

// Cluster is one cluster's API server.
type Cluster struct {
	// Context is the name of its context in the kubeconfig.
	Context   string
	Namespace string
	// UpgradeCRDs lets Apply add versions to CRDs that strait did not install.
	UpgradeCRDs bool

	rest    *rest.Config
	objects dynamic.Interface
	kinds   meta.ResettableRESTMapper
}

// Open reads the kubeconfig. It does not contact the server.
func Open(o Options) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	o.Login.CurrentContext = o.Context
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o.Login)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig for context %q: %w", o.Context, err)
	}
	name := o.Context
	if raw, err := loader.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	// We send short bursts of requests: client-go's rate limit would only make users wait.
	config.QPS = -1
	if config.Timeout == 0 {
		config.Timeout = 30 * time.Second
	}
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

// ContextNames returns the names of the contexts of a kubeconfig, or of the one that kubectl would
// use, sorted; nil if it cannot be read.
func ContextNames(kubeconfig string) []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// resource returns the client for an object's kind, in the object's namespace if the kind has one.
func (c *Cluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	m, err := c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.kinds.Reset() // a CRD may have been created since
		m, err = c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if meta.IsNoMatchError(err) && kind.Group == monitoring {
		return nil, fmt.Errorf("the API server has no kind %s: install the CRDs of the Prometheus operator, or turn off the values below metrics: %w", kind.Kind, err)
	}
	if err != nil {
		return nil, fmt.Errorf("find kind %s at the API server: %w", kind.Kind, err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.objects.Resource(m.Resource).Namespace(o.GetNamespace()), nil
	}
	return c.objects.Resource(m.Resource), nil
}

// APIs returns those at the server on which it depends what the chart renders, as GROUP/VERSION.
func (c *Cluster) APIs() ([]string, error) {
	_, err := c.kinds.RESTMapping(schema.GroupKind{Group: openShift, Kind: "SecurityContextConstraints"}, "v1")
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("context %s: ask which APIs there are: %w", c.Context, err)
	}
	return []string{openShift + "/v1"}, nil
}

// poll calls ask until it is done, it fails, or ctx ends, in which case poll returns the cause.
func poll(ctx context.Context, every time.Duration, ask func() (done bool, err error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		done, err := ask()
		if err != nil && ctx.Err() != nil {
			// The error of a request that ctx cut short means nothing by itself.
			return context.Cause(ctx)
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
