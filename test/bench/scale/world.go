package scale

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"
)

const (
	// perNamespace is how many Services share a namespace.
	perNamespace = 100
	// writers is how many requests to write run at the same time.
	writers = 32
)

// world is the cluster in the API server.
type world struct {
	services, endpoints int
	core                kubernetes.Interface
	mcs                 mcsclient.Interface
}

func newWorld(kubeconfig string, services, endpoints int) (*world, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS = -1
	w := &world{services: services, endpoints: endpoints}
	if w.core, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, err
	}
	w.mcs, err = mcsclient.NewForConfig(cfg)
	return w, err
}

func namespaceOf(service int) string { return fmt.Sprint("team-", service/perNamespace) }
func serviceName(i int) string       { return fmt.Sprint("service-", i) }
func nodeName(n int) string          { return fmt.Sprint("node-", n) }
func nodeAddr(n int) netip.Addr      { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 1)}) }
func nodePods(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n), 0, 0}), 16)
}

// pod returns one endpoint of a service. The endpoints of the last service are all on the first
// node, which is straitd's. Those of any other service are each on another node, because a service
// with a pod on straitd's own node would use only that pod. The first endpoint of the first service
// is on the quick node.
func (w *world) pod(service, endpoint int) (node int, addr netip.Addr, name string) {
	name = fmt.Sprintf("service-%d-6b7f8d9c5-%05d", service, endpoint)
	if service == w.hot() {
		return 0, netip.AddrFrom4([4]byte{10, 0, 0, byte(endpoint + 1)}), name
	}
	if node = endpoint + 1; service == 0 && endpoint == 0 {
		node = w.quick()
	}
	return node, netip.AddrFrom4([4]byte{10, byte(node), byte(service >> 8), byte(service)}), name
}

// hot returns the service whose endpoints change through the API server.
func (w *world) hot() int { return w.services - 1 }

// nodes returns the number of nodes: straitd's, one for each endpoint of a service, and the quick
// node.
func (w *world) nodes() int { return w.endpoints + 2 }

// quick returns the quick node. Its only endpoint is the first of the first service, so that its
// daemon publishes a change in no time.
func (w *world) quick() int { return w.endpoints + 1 }

// fill creates all objects in the API server.
func (w *world) fill(ctx context.Context) error {
	for n := range w.nodes() {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(n), Labels: map[string]string{corev1.LabelTopologyZone: "zone-1"}},
			Spec:   corev1.NodeSpec{PodCIDR: nodePods(n).String(), PodCIDRs: []string{nodePods(n).String()}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddr(n).String()}}}}
		if _, err := w.core.CoreV1().Nodes().Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
	}
	if err := w.namespace(ctx, "strait-system"); err != nil {
		return err
	}
	for first := 0; first < w.services; first += perNamespace {
		if err := w.namespace(ctx, namespaceOf(first)); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for first := 0; first < w.services; first += perNamespace {
		for i := first; i < min(first+perNamespace, w.services); i++ {
			g.Go(func() error { return w.service(ctx, i) })
		}
	}
	return g.Wait()
}

func (w *world) namespace(ctx context.Context, name string) error {
	_, err := w.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	return nil
}

// service creates a Service with its slice and its export.
func (w *world) service(ctx context.Context, i int) error {
	ns, meta := namespaceOf(i), metav1.ObjectMeta{Name: serviceName(i)}
	if _, err := w.core.CoreV1().Services(ns).Create(ctx, plainService(meta.Name), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service: %w", err)
	}
	if _, err := w.core.DiscoveryV1().EndpointSlices(ns).Create(ctx, w.slice(i), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create slice: %w", err)
	}
	if _, err := w.mcs.MulticlusterV1beta1().ServiceExports(ns).Create(ctx, &mcsv1beta1.ServiceExport{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create export: %w", err)
	}
	return nil
}

func (w *world) slice(i int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: serviceName(i) + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: serviceName(i)}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for e := range w.endpoints {
		node, addr, name := w.pod(i, e)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{addr.String()}, NodeName: new(nodeName(node)), Zone: new("zone-1"),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: namespaceOf(i), Name: name},
		})
	}
	return s
}

// ready sets whether the first pod of the hot service is ready.
func (w *world) ready(ctx context.Context, is bool) error {
	i := w.hot()
	s := w.slice(i)
	s.Endpoints[0].Conditions.Ready, s.Endpoints[0].Conditions.Serving = new(is), new(is)
	if _, err := w.core.DiscoveryV1().EndpointSlices(namespaceOf(i)).Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update slice: %w", err)
	}
	return nil
}
