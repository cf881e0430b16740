// Package builtin has typed clients for those built-in kinds that strait uses.
//
// Input is how to reach an API server; outputs are client-go's generic clients. It is there because
// client-go's clientset registers all kinds of Kubernetes in all their versions, which made straitd
// a third larger, and both programs slow to build. It must not know what the kinds are used for.
package builtin

import (
	"errors"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// scheme has the kinds of the groups below.
var scheme = runtime.NewScheme()

func init() {
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		authenticationv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme,
		eventsv1.AddToScheme, networkingv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
}

var (
	codecs     = serializer.NewCodecFactory(scheme)
	parameters = runtime.NewParameterCodec(scheme)
)

// Clients are those of one API server. Make them with New. Each method makes a client; a namespace
// is empty for all namespaces.
type Clients struct {
	authentication, coordination, core, discovery, events, networking rest.Interface
}

// Protobuf returns a configuration that asks for protobuf, which costs a fifth as much to decode as
// JSON. API servers serve custom resources only as JSON.
func Protobuf(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.ContentType = runtime.ContentTypeProtobuf
	return cfg
}

// New makes Clients that ask for protobuf. It opens no connection.
func New(cfg *rest.Config) (*Clients, error) {
	cfg = Protobuf(cfg)
	cfg.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme, codecs).WithoutConversion()
	shared, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	c := &Clients{}
	var errs []error
	for _, g := range []struct {
		of      schema.GroupVersion
		path    string
		clients *rest.Interface
	}{
		{authenticationv1.SchemeGroupVersion, "/apis", &c.authentication},
		{coordinationv1.SchemeGroupVersion, "/apis", &c.coordination},
		{corev1.SchemeGroupVersion, "/api", &c.core},
		{discoveryv1.SchemeGroupVersion, "/apis", &c.discovery},
		{eventsv1.SchemeGroupVersion, "/apis", &c.events},
		{networkingv1.SchemeGroupVersion, "/apis", &c.networking},
	} {
		of := rest.CopyConfig(cfg)
		of.GroupVersion, of.APIPath = &g.of, g.path
		client, err := rest.RESTClientForConfigAndClient(of, shared)
		*g.clients, errs = client, append(errs, err)
	}
	return c, errors.Join(errs...)
}

// REST is a client for any path.
func (c *Clients) REST() rest.Interface { return c.core }

// Services returns a client for Services.
func (c *Clients) Services(namespace string) *gentype.ClientWithList[*corev1.Service, *corev1.ServiceList] {
	return listed(c.core, "services", namespace, func() *corev1.Service { return &corev1.Service{} }, func() *corev1.ServiceList { return &corev1.ServiceList{} })
}

// Namespaces returns a client for Namespaces, which have none themselves.
func (c *Clients) Namespaces() *gentype.ClientWithList[*corev1.Namespace, *corev1.NamespaceList] {
	return listed(c.core, "namespaces", "", func() *corev1.Namespace { return &corev1.Namespace{} }, func() *corev1.NamespaceList { return &corev1.NamespaceList{} })
}

// Pods returns a client for Pods.
func (c *Clients) Pods(namespace string) *gentype.ClientWithList[*corev1.Pod, *corev1.PodList] {
	return listed(c.core, "pods", namespace, func() *corev1.Pod { return &corev1.Pod{} }, func() *corev1.PodList { return &corev1.PodList{} })
}

// Secrets returns a client for Secrets.
func (c *Clients) Secrets(namespace string) *gentype.Client[*corev1.Secret] {
	return plain(c.core, "secrets", namespace, func() *corev1.Secret { return &corev1.Secret{} })
}

// ConfigMaps returns a client for ConfigMaps.
func (c *Clients) ConfigMaps(namespace string) *gentype.Client[*corev1.ConfigMap] {
	return plain(c.core, "configmaps", namespace, func() *corev1.ConfigMap { return &corev1.ConfigMap{} })
}

// EndpointSlices returns a client for EndpointSlices.
func (c *Clients) EndpointSlices(namespace string) *gentype.ClientWithList[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	return listed(c.discovery, "endpointslices", namespace, func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} },
		func() *discoveryv1.EndpointSliceList { return &discoveryv1.EndpointSliceList{} })
}

// Ingresses returns a client for Ingresses.
func (c *Clients) Ingresses(namespace string) *gentype.ClientWithList[*networkingv1.Ingress, *networkingv1.IngressList] {
	return listed(c.networking, "ingresses", namespace, func() *networkingv1.Ingress { return &networkingv1.Ingress{} },
		func() *networkingv1.IngressList { return &networkingv1.IngressList{} })
}

// Events returns a client for Events.
func (c *Clients) Events(namespace string) *gentype.Client[*eventsv1.Event] {
	return plain(c.events, "events", namespace, func() *eventsv1.Event { return &eventsv1.Event{} })
}

// Leases returns a client for Leases.
func (c *Clients) Leases(namespace string) *gentype.Client[*coordinationv1.Lease] {
	return plain(c.coordination, "leases", namespace, func() *coordinationv1.Lease { return &coordinationv1.Lease{} })
}

// TokenReviews returns a client for TokenReviews, which have no namespace.
func (c *Clients) TokenReviews() *gentype.Client[*authenticationv1.TokenReview] {
	return plain(c.authentication, "tokenreviews", "", func() *authenticationv1.TokenReview { return &authenticationv1.TokenReview{} })
}

type object interface {
	runtime.Object
	metav1.Object
}

func plain[T object](r rest.Interface, resource, namespace string, empty func() T) *gentype.Client[T] {
	return gentype.NewClient(resource, r, parameters, namespace, empty, gentype.PrefersProtobuf[T]())
}

func listed[T object, L runtime.Object](r rest.Interface, resource, namespace string, empty func() T, list func() L) *gentype.ClientWithList[T, L] {
	return gentype.NewClientWithList(resource, r, parameters, namespace, empty, list, gentype.PrefersProtobuf[T]())
}
