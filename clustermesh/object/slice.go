package object

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// readSlices returns the endpoints of the wanted services, sorted by service and address. Each
// address of a service appears once.
func readSlices(objs []*Slice, wanted map[clustermesh.ServiceName]bool, nodes []clustermesh.Node, on *ground, r *report) []clustermesh.Endpoint {
	known := map[clustermesh.NodeName]bool{}
	for _, n := range nodes {
		known[n.Name] = true
	}
	// If fields of one endpoint differ, merging uses the first value, so the order must not be the
	// caller's.
	objs = slices.Clone(objs)
	slices.SortStableFunc(objs, func(a, b *Slice) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var all []clustermesh.Endpoint
	for _, obj := range objs {
		o := r.on("EndpointSlice", obj.Namespace, obj.Name)
		if service, ok := serviceOf(obj, o); ok && wanted[service] {
			s := slice{obj, service, on, o}
			all = append(all, s.endpoints(known)...)
		}
	}
	return mergeEndpoints(all)
}

// serviceOf returns the Service that a slice belongs to. It returns none for slices imported from
// other clusters and for those that strait itself writes: this cluster does not announce them.
func serviceOf(obj *Slice, o *objectReport) (clustermesh.ServiceName, bool) {
	if obj.imported {
		return clustermesh.ServiceName{}, false
	}
	if obj.service == "" {
		o.warning(problem.SliceWithoutService, "metadata.labels", "no label "+discoveryv1.LabelServiceName+": the slice belongs to no Service",
			"add the label with the name of the Service")
		return clustermesh.ServiceName{}, false
	}
	return clustermesh.ServiceName{Namespace: obj.Namespace, Name: obj.service}, true
}

// slice is one EndpointSlice being read.
type slice struct {
	obj     *Slice
	service clustermesh.ServiceName
	on      *ground
	*objectReport
}

// endpoints returns an endpoint per address.
func (s slice) endpoints(known map[clustermesh.NodeName]bool) (out []clustermesh.Endpoint) {
	switch s.obj.addressType {
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
	case discoveryv1.AddressTypeFQDN:
		s.problem(problem.ValueInvalid, "addressType", "endpoints that are host names (FQDN) cannot be balanced: slice not used", "list IP addresses")
		return nil
	default:
		s.problem(problem.ValueInvalid, "addressType", fmt.Sprintf("%q is not an address type: slice not used", s.obj.addressType), "write IPv4 or IPv6")
		return nil
	}
	ports := s.ports()
	var left doubts
	for i, e := range s.obj.endpoints {
		base := s.endpoint(i, e, known)
		base.Ports = ports
		for j, text := range e.addresses {
			ip, err := s.address(text)
			if err != nil {
				s.problem(problem.ValueInvalid, at("endpoints[%d].addresses[%d]", i, j), err.Error(), "correct the address; the slice's other endpoints are used")
				continue
			}
			if left.add(s.on.doubt(s.obj.Namespace, base.Node, ip), at("endpoints[%d].addresses[%d]", i, j)) {
				continue
			}
			base.Addr = ip
			out = append(out, base)
		}
	}
	left.report(s.objectReport)
	return out
}

func (s slice) address(text string) (netip.Addr, error) {
	ip, err := parseHost(text)
	if err != nil {
		return ip, err
	}
	if ip.Is4() != (s.obj.addressType == discoveryv1.AddressTypeIPv4) {
		return ip, fmt.Errorf("%s is not of the slice's addressType %s: not used", ip, s.obj.addressType)
	}
	return ip, nil
}

// endpoint returns everything but address and ports.
func (s slice) endpoint(i int, e sliceEndpoint, known map[clustermesh.NodeName]bool) clustermesh.Endpoint {
	out := clustermesh.Endpoint{
		Service:     s.service,
		Node:        clustermesh.NodeName(e.node),
		Zone:        e.zone,
		Hostname:    e.hostname,
		Pod:         e.pod,
		Ready:       e.ready,
		Serving:     e.serving,
		Terminating: e.terminating,
	}
	if len(e.addresses) == 0 {
		s.problem(problem.ValueInvalid, at("endpoints[%d].addresses", i), "the endpoint has no address", "add one, or remove the endpoint")
	}
	if out.Node != "" && !known[out.Node] && s.report.missing("Node", "", e.node) {
		s.warning(problem.EndpointWithoutNode, at("endpoints[%d].nodeName", i), fmt.Sprintf("there is no Node %q: no node announces this endpoint", out.Node),
			"correct the name, add the Node, or leave nodeName out")
	}
	if out.Hostname != "" && len(validation.IsDNS1123Label(out.Hostname)) > 0 {
		s.problem(problem.ValueInvalid, at("endpoints[%d].hostname", i), fmt.Sprintf("%q cannot be part of a DNS name: not used", out.Hostname),
			"use lower case letters, digits and -")
		out.Hostname = ""
	}
	return out
}

// ports returns the usable ports, sorted, each once.
func (s slice) ports() (out []clustermesh.EndpointPort) {
	for i, h := range s.obj.ports {
		p := h.Value()
		proto, err := l4.ParseProto(p.protocol)
		if err != nil {
			s.problem(problem.ValueInvalid, at("ports[%d].protocol", i), err.Error()+": port not used", "write TCP or UDP")
			continue
		}
		if p.port < 1 || p.port > 65535 {
			s.problem(problem.ValueInvalid, at("ports[%d].port", i), fmt.Sprintf("port number %d is missing or out of range: port not used", p.port), "write 1 to 65535")
			continue
		}
		out = append(out, clustermesh.EndpointPort{Name: p.name, Proto: proto, Port: uint16(p.port)})
	}
	return sortPorts(out)
}

func sortPorts(ports []clustermesh.EndpointPort) []clustermesh.EndpointPort {
	slices.SortFunc(ports, func(a, b clustermesh.EndpointPort) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(ports)
}

// mergeEndpoints merges the endpoints of a service that have the same address. Kubernetes allows an
// address in several slices: while it moves from one to another, and if pods resolve a named target
// port differently. If their conditions differ, the more optimistic one wins, as in kube-proxy.
func mergeEndpoints(all []clustermesh.Endpoint) []clustermesh.Endpoint {
	slices.SortStableFunc(all, func(a, b clustermesh.Endpoint) int {
		return cmp.Or(a.Service.Compare(b.Service), a.Addr.Compare(b.Addr))
	})
	var out []clustermesh.Endpoint
	for _, e := range all {
		n := len(out) - 1
		if n < 0 || out[n].Service != e.Service || out[n].Addr != e.Addr {
			out = append(out, e)
			continue
		}
		m := &out[n]
		m.Ports = sortPorts(slices.Concat(m.Ports, e.Ports))
		m.Node = cmp.Or(m.Node, e.Node)
		m.Zone = cmp.Or(m.Zone, e.Zone)
		m.Hostname = cmp.Or(m.Hostname, e.Hostname)
		m.Pod = cmp.Or(m.Pod, e.Pod)
		m.Ready = m.Ready || e.Ready
		m.Serving = m.Serving || e.Serving
		m.Terminating = m.Terminating && e.Terminating
	}
	return out
}
