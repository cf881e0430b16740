package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcs "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// bench is a real API server, behind a gate that can refuse what a test chooses, with a namespace and a Node of
// the test's own.
type bench struct {
	t      *testing.T
	direct Client
	core   kubernetes.Interface
	mcs    mcs.Interface
	gate   *gate
	ns     string
	node   clustermesh.NodeName
}

func newBench(t *testing.T) *bench {
	t.Helper()
	c, err := Connect(apiserver.Lab(t, 1).Kubeconfig())
	must(t, err)
	b := &bench{t: t, direct: c, gate: newGate(t, c.REST)}
	b.mcs, err = mcs.NewForConfig(c.REST)
	must(t, err)
	b.crds()
	b.core = coreOf(t, c)
	ns, err := b.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "strait-t-"}}, metav1.CreateOptions{})
	must(t, err)
	b.ns, b.node = ns.Name, clustermesh.NodeName(ns.Name)
	t.Cleanup(b.clear)
	return b
}

// coreOf returns a client of all built-in kinds, for what only tests need.
func coreOf(t *testing.T, c Client) kubernetes.Interface {
	t.Helper()
	core, err := kubernetes.NewForConfig(c.REST)
	must(t, err)
	return core
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// crds installs those of the MCS API and a ClusterProperty like about-api's; other tests share them.
func (b *bench) crds() {
	b.t.Helper()
	for _, text := range []string{string(crd.ServiceExportCRD), string(crd.ServiceImportCRD), clusterPropertyCRD, gkeExportCRD} {
		u := &unstructured.Unstructured{}
		must(b.t, yaml.Unmarshal([]byte(text), &u.Object))
		_, err := b.direct.dynamic.Resource(crdResource).Create(b.t.Context(), u, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			b.t.Fatal(err)
		}
	}
	testutil.Eventually(b.t, 30*time.Second, func() error {
		_, err := b.mcs.MulticlusterV1beta1().ServiceExports("default").List(b.t.Context(), metav1.ListOptions{})
		return err
	})
}

const clusterPropertyCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
metadata: {name: clusterproperties.about.k8s.io, annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/enhancements/pull/2149"}},
spec: {group: about.k8s.io, scope: Cluster, names: {kind: ClusterProperty, listKind: ClusterPropertyList, plural: clusterproperties, singular: clusterproperty},
versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

const gkeExportCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: serviceexports.net.gke.io},
spec: {group: net.gke.io, scope: Namespaced, names: {kind: ServiceExport, listKind: ServiceExportList, plural: serviceexports, singular: serviceexport},
versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

var gkeResource = schema.GroupVersionResource{Group: "net.gke.io", Version: "v1", Resource: "serviceexports"}

// clear removes what the test made: there may be no controller that does.
func (b *bench) clear() {
	ctx := context.WithoutCancel(b.t.Context())
	none, all := metav1.DeleteOptions{}, metav1.ListOptions{}
	_ = b.mcs.MulticlusterV1beta1().ServiceExports(b.ns).DeleteCollection(ctx, none, all)
	_ = b.direct.dynamic.Resource(gkeResource).Namespace(b.ns).DeleteCollection(ctx, none, all)
	_ = b.core.DiscoveryV1().EndpointSlices(b.ns).DeleteCollection(ctx, none, all)
	if made, err := b.core.CoreV1().Services(b.ns).List(ctx, all); err == nil {
		for _, s := range made.Items {
			_ = b.core.CoreV1().Services(b.ns).Delete(ctx, s.Name, none)
		}
	}
	_ = b.core.CoordinationV1().Leases(b.ns).DeleteCollection(ctx, none, all)
	_ = b.core.CoreV1().Nodes().Delete(ctx, string(b.node), none)
	must(b.t, b.core.CoreV1().Namespaces().Delete(ctx, b.ns, none))
}

// start runs a Source behind the gate.
func (b *bench) start() *Source {
	b.t.Helper()
	s := New(Config{Client: b.gate.client(b.t), Node: b.node, Log: testutil.Logger(b.t)})
	b.run(s.Run)
	return s
}

// run runs something until the test ends, or the returned function is called.
func (b *bench) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				b.t.Error(err)
			}
		case <-time.After(20 * time.Second):
			b.t.Error("does not stop")
		}
	})
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) eventually(what string, within time.Duration, cond func() bool) time.Duration {
	b.t.Helper()
	start := time.Now()
	for !cond() {
		if time.Since(start) > within {
			b.t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(start)
}

func (b *bench) name(service string) clustermesh.ServiceName {
	return clustermesh.ServiceName{Namespace: b.ns, Name: service}
}

// export makes a Service with a ServiceExport.
func (b *bench) export(name string) {
	b.t.Helper()
	b.service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}})
	_, err := b.mcs.MulticlusterV1beta1().ServiceExports(b.ns).Create(b.t.Context(),
		&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(b.t, err)
}

func (b *bench) service(s *corev1.Service) *corev1.Service {
	b.t.Helper()
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
	made, err := b.core.CoreV1().Services(b.ns).Create(b.t.Context(), s, metav1.CreateOptions{})
	must(b.t, err)
	return made
}

// slice makes an EndpointSlice of a service with an endpoint on each node; "" is none.
func (b *bench) slice(service string, labels map[string]string, nodes map[string]clustermesh.NodeName) *discoveryv1.EndpointSlice {
	b.t.Helper()
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: service + "-", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}}
	for k, v := range labels {
		s.Labels[k] = v
	}
	for addr, n := range nodes {
		e := discoveryv1.Endpoint{Addresses: []string{addr}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "pod-" + addr}}
		if n != "" {
			e.NodeName = new(string(n))
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	made, err := b.core.DiscoveryV1().EndpointSlices(b.ns).Create(b.t.Context(), s, metav1.CreateOptions{})
	must(b.t, err)
	return made
}

func hasExport(s *Source, name clustermesh.ServiceName) bool {
	local, ok := s.Local()
	for _, e := range local.Exports {
		if ok && e.Service == name {
			return true
		}
	}
	return false
}

// endpoints are the addresses of a service that a Source knows, joined.
func endpoints(s *Source, name clustermesh.ServiceName) string {
	local, _ := s.Local()
	var out []string
	for _, e := range local.Endpoints {
		if e.Service == name {
			out = append(out, e.Addr.String())
		}
	}
	return strings.Join(out, " ")
}

func hasProblem(ps []clustermesh.Problem, parts ...string) bool {
	for _, p := range ps {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(p.String(), part)
		}
		if all {
			return true
		}
	}
	return false
}

// gate stands between a client and the API server. While closed it breaks every connection.
type gate struct {
	url   string
	proxy *httputil.ReverseProxy

	mu     sync.Mutex
	refuse map[string]int // by a part of the path: the status
	closed bool
	cut    context.CancelFunc
	ctx    context.Context
	inside sync.WaitGroup // requests that go through
}

func newGate(t *testing.T, cfg *rest.Config) *gate {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	must(t, err)
	transport, err := rest.TransportFor(cfg)
	must(t, err)
	g := &gate{refuse: map[string]int{}}
	g.ctx, g.cut = context.WithCancel(context.Background())
	g.proxy = &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	g.proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(g)
	g.url = server.URL
	t.Cleanup(func() {
		g.set(true)
		server.CloseClientConnections()
		server.Close()
	})
	return g
}

func (g *gate) client(t *testing.T) Client {
	t.Helper()
	c, err := NewClient(&rest.Config{Host: g.url})
	must(t, err)
	return c
}

// ServeHTTP passes a request on.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	closed, ctx := g.closed, g.ctx
	status := 0
	for part, s := range g.refuse {
		if strings.Contains(r.URL.Path, part) {
			status = s
		}
	}
	if !closed {
		g.inside.Add(1)
		defer g.inside.Done()
	}
	g.mu.Unlock()
	if closed {
		panic(http.ErrAbortHandler)
	}
	if status != 0 {
		http.Error(w, "refused by the test's gate", status)
		return
	}
	ctx2, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	g.proxy.ServeHTTP(w, r.WithContext(ctx2))
}

// set closes or opens the gate; closing breaks what goes through, and returns when nothing does any more.
func (g *gate) set(closed bool) {
	g.mu.Lock()
	g.closed = closed
	if closed {
		g.cut()
		g.ctx, g.cut = context.WithCancel(context.Background())
	}
	g.mu.Unlock()
	if closed {
		g.inside.Wait()
	}
}

// deny answers requests whose path has a part with a status, 0 for no more.
func (g *gate) deny(part string, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if status == 0 {
		delete(g.refuse, part)
		return
	}
	g.refuse[part] = status
	g.cut()
	g.ctx, g.cut = context.WithCancel(context.Background())
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }
