package replicate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"strait.io/strait/clustermesh/kube/builtin"
	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/notify"
)

// Manager is the field manager of what is written.
const Manager = "strait-replicate"

// server is the API server of a cluster, and what is known of it.
type server struct {
	id     string
	client *builtin.Clients
	// objects writes.
	objects dynamic.Interface
	uid     string // of the Namespace kube-system: what tells clusters apart
	// Set by follow.
	watched map[string]cache.SharedIndexInformer // by kind
	running sync.WaitGroup
	// retired are mirrors whose name has changed.
	retired mirror.Retired
}

func open(c FileCluster, log *slog.Logger) (*server, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: kubeconfig %s: %w", c.Name, c.Kubeconfig, err)
	}
	log.Debug("kubeconfig read", "cluster", c.ID(), "file", c.Kubeconfig, "context", c.Context, "server", config.Host)
	if log.Enabled(context.Background(), slog.LevelDebug) {
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return transport.NewDebuggingRoundTripper(rt, transport.DebugURLTiming)
		})
	}
	// We send short bursts of requests: client-go's rate limit would only make users wait.
	config.QPS = -1
	client, err := builtin.New(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	return &server{id: c.ID(), client: client, objects: objects}, nil
}

// readWithin bounds the wait for an API server that does not answer.
const readWithin = 30 * time.Second

// read asks the API server for everything that counts.
func (s *server) read(ctx context.Context) (mirror.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	var o metav1.ListOptions
	namespaces, err := s.client.Namespaces().List(ctx, o)
	if err != nil {
		return mirror.Cluster{}, fmt.Errorf("cluster %s: list Namespaces: %w", s.id, err)
	}
	services, err := s.client.Services("").List(ctx, o)
	if err != nil {
		return mirror.Cluster{}, fmt.Errorf("cluster %s: list Services: %w", s.id, err)
	}
	slices, err := s.client.EndpointSlices("").List(ctx, o)
	if err != nil {
		return mirror.Cluster{}, fmt.Errorf("cluster %s: list EndpointSlices: %w", s.id, err)
	}
	return s.cluster(pointers(namespaces.Items), pointers(services.Items), pointers(slices.Items)), nil
}

func pointers[T any](items []T) (out []*T) {
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}

func (s *server) cluster(namespaces []*corev1.Namespace, services []*corev1.Service, slices []*discoveryv1.EndpointSlice) mirror.Cluster {
	out := mirror.Cluster{ID: s.id, Services: services, Slices: slices, Namespaces: map[string]bool{}}
	for _, ns := range namespaces {
		if ns.DeletionTimestamp == nil {
			out.Namespaces[ns.Name] = true
		}
		if ns.Name == metav1.NamespaceSystem {
			s.uid = string(ns.UID)
		}
	}
	return out
}

// follow starts to watch the API server until ctx ends; wait for running then. Changed receives when
// anything changes, and failed what keeps it from watching.
func (s *server) follow(ctx context.Context, changed notify.Signal, failed func(error)) error {
	s.watched = map[string]cache.SharedIndexInformer{}
	poke := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed.Poke() }, UpdateFunc: func(any, any) { changed.Poke() }, DeleteFunc: func(any) { changed.Poke() },
	}
	for _, kind := range []string{"Namespace", "Service", "EndpointSlice"} {
		i, _ := s.client.Informer(kind, "")
		s.watched[kind] = i
		if _, err := i.AddEventHandler(poke); err != nil {
			return err
		}
		err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) && !apierrors.IsResourceExpired(err) {
				failed(fmt.Errorf("cluster %s: watch: %w", s.id, err))
			}
		})
		if err != nil {
			return err
		}
		s.running.Go(func() { i.RunWithContext(ctx) })
	}
	return nil
}

// seen returns what the watches have seen; an error until they have read everything once. While the
// API server is away, what it said last counts.
func (s *server) seen() (mirror.Cluster, error) {
	for _, i := range s.watched {
		if !i.HasSynced() {
			return mirror.Cluster{}, fmt.Errorf("cluster %s: its API server has not answered yet", s.id)
		}
	}
	return s.cluster(held[*corev1.Namespace](s.watched["Namespace"]), held[*corev1.Service](s.watched["Service"]), held[*discoveryv1.EndpointSlice](s.watched["EndpointSlice"])), nil
}

// held returns the objects of an informer.
func held[T any](i cache.SharedIndexInformer) (out []T) {
	for _, o := range i.GetStore().List() {
		out = append(out, o.(T))
	}
	return out
}

// writeWithin bounds the wait for an API server that does not answer.
const writeWithin = 30 * time.Second

// do carries out one write.
func (s *server) do(ctx context.Context, o written.Op) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if _, err := write.Send(ctx, s.objects, Manager, o); err != nil {
		return fmt.Errorf("cluster %s: %s: %w", s.id, o, err)
	}
	return nil
}
