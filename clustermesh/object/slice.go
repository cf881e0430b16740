package object

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// readSlices returns the endpoints of the wanted services, each with its ports, sorted by service
// and address. Each listener of a service, an address with a port, appears once.
func readSlices(objs []*Slice, wanted map[clustermesh.ServiceName][]clustermesh.ServicePort, nodes []clustermesh.Node, on *ground, r *report) []clustermesh.Endpoint {
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
		service, ok := serviceOf(obj, o)
		if !ok {
			continue
		}
		if ports, is := wanted[service]; is {
			s := slice{obj, service, on, o}
			all = append(all, s.endpoints(known, ports)...)
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

// endpoints returns an endpoint per address. Of are the ports of the Service.
func (s slice) endpoints(known map[clustermesh.NodeName]bool, of []clustermesh.ServicePort) (out []clustermesh.Endpoint) {
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
	s.checkNames(ports, of)
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
		if p.name != "" && len(validation.IsDNS1123Label(p.name)) > 0 {
			s.problem(problem.ValueInvalid, at("ports[%d].name", i), fmt.Sprintf("%q is not a port name: port not used", p.name), "use lower case letters, digits and -")
			continue
		}
		out = append(out, clustermesh.EndpointPort{Name: p.name, Proto: proto, Port: uint16(p.port)})
	}
	return sortPorts(out)
}

// checkNames warns if the slice serves no port of its Service: a port of a slice belongs to the
// port of the Service that has its name, not its number. The ports of a headless Service can be
// left out.
func (s slice) checkNames(ports []clustermesh.EndpointPort, of []clustermesh.ServicePort) {
	if len(ports) == 0 || len(of) == 0 || len(s.obj.endpoints) == 0 {
		return
	}
	for _, p := range ports {
		if slices.ContainsFunc(of, func(q clustermesh.ServicePort) bool { return p.Name == q.Name && p.Proto == q.Proto }) {
			return
		}
	}
	names := make([]string, len(of))
	for i, q := range of {
		names[i] = fmt.Sprintf("%q/%s", q.Name, q.Proto)
	}
	s.warning(problem.SlicePortUnmatched, "ports[0].name", fmt.Sprintf("no port of the slice has the name and protocol of one of its Service, which are %s: nothing is balanced to its endpoints",
		strings.Join(names, ", ")), "give the slice's ports the names that they have in the Service")
}

func sortPorts(ports []clustermesh.EndpointPort) []clustermesh.EndpointPort {
	slices.SortFunc(ports, comparePorts)
	return slices.Compact(ports)
}

func comparePorts(a, b clustermesh.EndpointPort) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
}

// mergeEndpoints merges what is listed of one listener, which is an address with a port. Kubernetes
// allows one in several slices: while it moves from one to another. If they differ in it,
// the more optimistic condition wins, as in kube-proxy, and otherwise the first value. Two
// listeners at one address are two endpoints, unless both have the same: then they are one
// endpoint with two ports.
func mergeEndpoints(all []clustermesh.Endpoint) (out []clustermesh.Endpoint) {
	slices.SortStableFunc(all, func(a, b clustermesh.Endpoint) int {
		return cmp.Or(a.Service.Compare(b.Service), a.Addr.Compare(b.Addr))
	})
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Service == all[0].Service && all[n].Addr == all[0].Addr {
			n++
		}
		out = append(out, mergeListeners(all[:n])...)
		all = all[n:]
	}
	return out
}

// mergeListeners merges the listeners at one address of a service.
func mergeListeners(all []clustermesh.Endpoint) []clustermesh.Endpoint {
	if len(all) == 1 {
		return all
	}
	var listeners []clustermesh.Endpoint // with at most one port each
	at := map[clustermesh.EndpointPort]int{}
	for _, e := range all {
		for _, p := range portsOrNone(e.Ports) {
			l := e
			if l.Ports = nil; p != (clustermesh.EndpointPort{}) {
				l.Ports = []clustermesh.EndpointPort{p}
			}
			if i, again := at[p]; again {
				merge(&listeners[i], l)
				continue
			}
			at[p] = len(listeners)
			listeners = append(listeners, l)
		}
	}
	var out []clustermesh.Endpoint
	for _, l := range listeners {
		same := func(e clustermesh.Endpoint) bool { e.Ports = l.Ports; return e.Equal(l) }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].Ports = sortPorts(append(out[i].Ports, l.Ports...))
			continue
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b clustermesh.Endpoint) int { return slices.CompareFunc(a.Ports, b.Ports, comparePorts) })
	return out
}

// portsOrNone returns the ports, or one that is zero.
func portsOrNone(ports []clustermesh.EndpointPort) []clustermesh.EndpointPort {
	if len(ports) == 0 {
		return make([]clustermesh.EndpointPort, 1)
	}
	return ports
}

func merge(m *clustermesh.Endpoint, e clustermesh.Endpoint) {
	m.Node = cmp.Or(m.Node, e.Node)
	m.Zone = cmp.Or(m.Zone, e.Zone)
	m.Hostname = cmp.Or(m.Hostname, e.Hostname)
	m.Pod = cmp.Or(m.Pod, e.Pod)
	m.Ready = m.Ready || e.Ready
	m.Serving = m.Serving || e.Serving
	m.Terminating = m.Terminating && e.Terminating
}
