package mirror

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
)

// maxEndpoints is how many endpoints an EndpointSlice has: what the controller of Kubernetes fills.
const maxEndpoints = 100

// Offer returns what a cluster offers to another one by its policies, from its records. The
// objects are those that its API server may have, as far as a mirror of them goes. Own are the
// ranges of the other one's ClusterIPs.
func Offer(s clustermesh.State, from, to clustermesh.ClusterName, own []netip.Prefix) Cluster {
	out := Cluster{
		ID: string(from), Offered: map[string][]*corev1.Service{}, Entered: s.Entries(from, own), Exported: map[string][]clustermesh.ServiceName{},
	}
	services := map[clustermesh.ServiceName]*corev1.Service{}
	content := s.Records.Get(clustermesh.Origin{Cluster: from}).Content
	for _, e := range s.Imported(to, from) {
		if e.Policy != "" {
			out.Exported[e.Policy] = append(out.Exported[e.Policy], e.Service)
		}
	}
	for _, e := range content.Mirrors {
		if !e.For(to) {
			continue
		}
		svc := service(e)
		services[e.Service] = svc
		out.Services = append(out.Services, svc)
		out.Offered[e.Policy] = append(out.Offered[e.Policy], svc)
	}
	if len(services) == 0 {
		return out
	}
	groups := map[group][]clustermesh.Endpoint{}
	for o, r := range s.Records.All() {
		if o.Cluster != from || o.Node != "" && s.Dead(o) {
			continue
		}
		for _, e := range r.Content.Endpoints {
			if services[e.Service] == nil {
				continue
			}
			for _, ports := range clustermesh.OneOfEachName(e.Ports) {
				e.Ports = ports
				g := group{e.Service, clustermesh.FamilyOf(e.Addr), portsKey(ports)}
				groups[g] = append(groups[g], e)
			}
		}
	}
	for g, endpoints := range groups {
		out.Slices = append(out.Slices, g.slices(endpoints)...)
	}
	return out
}

// group is what the endpoints of an EndpointSlice have in common.
type group struct {
	service clustermesh.ServiceName
	family  clustermesh.Family
	ports   string
}

// portsKey is the same for lists of the same ports only.
func portsKey(ports []clustermesh.EndpointPort) (key string) {
	for _, p := range ports {
		key += p.Name + "/" + p.Proto.String() + "/" + strconv.Itoa(int(p.Port)) + " "
	}
	return key
}

// slices returns the EndpointSlices of a group. Their names are the same for the same endpoints.
func (g group) slices(endpoints []clustermesh.Endpoint) (out []*discoveryv1.EndpointSlice) {
	slices.SortFunc(endpoints, func(a, b clustermesh.Endpoint) int {
		return cmp.Or(a.Addr.Compare(b.Addr), -cmp.Compare(goodness(a), goodness(b)), cmp.Compare(a.Node, b.Node))
	})
	endpoints = slices.CompactFunc(endpoints, func(a, b clustermesh.Endpoint) bool { return a.Addr == b.Addr })
	for n := 0; len(endpoints) > 0; n++ {
		part := endpoints[:min(maxEndpoints, len(endpoints))]
		endpoints = endpoints[len(part):]
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: g.service.Namespace, Name: g.service.Name + " " + string(g.family) + " " + g.ports + strconv.Itoa(n),
				Labels: map[string]string{discoveryv1.LabelServiceName: g.service.Name},
			},
			AddressType: discoveryv1.AddressType(g.family),
		}
		for _, p := range part[0].Ports {
			name, protocol, port := p.Name, corev1.Protocol(p.Proto.String()), int32(p.Port)
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &port})
		}
		for _, e := range part {
			s.Endpoints = append(s.Endpoints, endpoint(e))
		}
		out = append(out, s)
	}
	return out
}

// goodness orders two endpoints of one listener, from two records, while it moves from one to the other.
func goodness(e clustermesh.Endpoint) int {
	switch {
	case e.Ready:
		return 2
	case e.Serving:
		return 1
	}
	return 0
}

func endpoint(e clustermesh.Endpoint) discoveryv1.Endpoint {
	out := discoveryv1.Endpoint{
		Addresses:  []string{address(e.Addr)},
		Conditions: discoveryv1.EndpointConditions{Ready: &e.Ready, Serving: &e.Serving, Terminating: &e.Terminating},
	}
	if e.Hostname != "" {
		out.Hostname = &e.Hostname
	}
	if e.Zone != "" {
		out.Zone = &e.Zone
	}
	return out
}

func address(a netip.Addr) string { return a.Unmap().String() }

// service returns the part of a Service that its mirrors have.
func service(e clustermesh.Export) *corev1.Service {
	out := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.Service.Namespace, Name: e.Service.Name, Labels: e.Labels, Annotations: e.Annotations, CreationTimestamp: metav1.Unix(e.Created, 0),
	}}
	if e.Type == clustermesh.Headless {
		out.Spec.ClusterIP = corev1.ClusterIPNone
	}
	for _, ip := range e.IPs {
		out.Spec.ClusterIPs = append(out.Spec.ClusterIPs, address(ip))
	}
	if e.AffinitySeconds > 0 {
		seconds := int32(e.AffinitySeconds)
		out.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		out.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
	for _, p := range e.Ports {
		port := corev1.ServicePort{Name: p.Name, Protocol: corev1.Protocol(p.Proto.String()), Port: int32(p.Port)}
		if p.AppProtocol != "" {
			port.AppProtocol = &p.AppProtocol
		}
		out.Spec.Ports = append(out.Spec.Ports, port)
	}
	return out
}
