package kube

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"strait.io/strait/clustermesh/kube/builtin"
)

// Client is a connection to an API server. Make one with Connect.
type Client struct {
	// Host is the API server's address, for messages.
	Host string
	// REST is the configuration for other clients of the same API server.
	REST *rest.Config

	contact  *contact
	reading  *rest.Config // used by the watches
	builtin  *builtin.Clients
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

// Connect reads the kubeconfig file, or the service account of the pod it runs in if the path is
// empty. It opens no connection.
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

// NewClient makes a Client from a copy of the configuration.
func NewClient(cfg *rest.Config) (Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "strait"
	// Watches are few and long, so there is nothing to rate-limit.
	cfg.QPS, cfg.Burst = -1, 0
	bounded(cfg)
	plain := rest.CopyConfig(cfg)
	heard := &contact{}
	cfg.Wrap(heard.wrap)
	c := Client{Host: cfg.Host, REST: plain, contact: heard, reading: cfg}
	var err error
	if c.builtin, err = builtin.New(cfg); err != nil {
		return c, fmt.Errorf("make API client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return c, fmt.Errorf("make API client: %w", err)
	}
	if c.metadata, err = metadata.NewForConfig(cfg); err != nil {
		return c, fmt.Errorf("make API client: %w", err)
	}
	return c, nil
}

// As returns a Client of the same API server that proves with a token who it is, and with nothing else.
// The token is asked for with each request.
func (c Client) As(token func() string) (Client, error) {
	cfg := rest.AnonymousClientConfig(c.REST)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return bearing{next, token} })
	return NewClient(cfg)
}

// bearing adds the token to requests.
type bearing struct {
	http.RoundTripper
	token func() string
}

// RoundTrip implements http.RoundTripper.
func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = utilnet.CloneRequest(r)
	r.Header.Set("Authorization", "Bearer "+b.token())
	return b.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper, for transportOf.
func (b bearing) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }
