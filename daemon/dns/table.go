package dns

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"strait.io/strait/clustermesh"
)

// Service is one import as DNS shows it.
type Service struct {
	Name     clustermesh.ServiceName
	Headless bool
	// IPs are the ClusterSetIPs; empty for a headless service.
	IPs []netip.Addr
	// Ports are those of the ClusterSetIPs. The endpoints of a headless service have their own.
	Ports []clustermesh.ServicePort
	// Endpoints are the ready endpoints of a headless service. Other services need none.
	Endpoints []Endpoint
}

// Endpoint is one address of a headless service.
type Endpoint struct {
	// Hostname is the endpoint's own. If empty, its address with dashes is used.
	Hostname string
	Cluster  clustermesh.ClusterName
	IP       netip.Addr
	// Ports are what the pod listens on, for SRV records: connections to a headless service are not
	// translated. A pod that lacks the Service's named targetPort has none.
	Ports []clustermesh.EndpointPort
}

// label returns the endpoint's part of its name, in lower case. Addresses become names as in
// CoreDNS.
func (e Endpoint) label() string {
	if e.Hostname != "" {
		return strings.ToLower(e.Hostname)
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(e.IP.String())
}

// Table holds all services, indexed for lookup. Immutable.
type Table struct {
	services   map[clustermesh.ServiceName]*Service
	namespaces map[string]bool
	// own are namespaces of which the cluster itself has objects.
	own map[string]bool
	// reverse returns hosts. The first PTR query builds the index.
	reverse func() map[netip.Addr]host
}

// NewTable makes a table. Own are the namespaces of which the cluster itself has objects; see
// falls. The caller must not change services afterwards.
func NewTable(services []Service, own ...string) *Table {
	t := &Table{services: make(map[clustermesh.ServiceName]*Service, len(services)), namespaces: map[string]bool{}, own: map[string]bool{}}
	t.reverse = sync.OnceValue(t.hosts)
	for _, ns := range own {
		t.own[strings.ToLower(ns)] = true
	}
	for i := range services {
		s := &services[i]
		name := clustermesh.ServiceName{Namespace: strings.ToLower(s.Name.Namespace), Name: strings.ToLower(s.Name.Name)}
		t.services[name] = s
		t.namespaces[name.Namespace] = true
	}
	return t
}

// node is what one name holds. Address records belong to the name itself; an SRV record points to
// another name.
type node struct {
	exists bool
	addrs  []netip.Addr
	srvs   []srv
	txt    string
}

// srv is a service's port and the host that answers on it.
type srv struct {
	port uint16
	// target is the host's labels in front of the service's own name; empty means the service
	// itself.
	target string
	addrs  []netip.Addr
}

// lookup finds a name by its labels below the zone, in lower case, leftmost first.
func (t *Table) lookup(labels []string) node {
	none := node{}
	n := len(labels)
	switch {
	case n == 0:
		return node{exists: true}
	case n == 1 && labels[0] == "dns-version":
		return node{exists: true, txt: schemaVersion}
	case labels[n-1] != "svc":
		return none
	case n == 1:
		return node{exists: true}
	case n == 2:
		return node{exists: t.namespaces[labels[0]]}
	}
	s, ok := t.services[clustermesh.ServiceName{Namespace: labels[n-2], Name: labels[n-3]}]
	// A headless service without a ready endpoint does not exist (MCS DNS specification).
	if !ok || s.Headless && len(s.Endpoints) == 0 {
		return none
	}
	return s.lookup(labels[:n-3])
}

// lookup finds a name by its labels below the service's own.
func (s Service) lookup(labels []string) node {
	switch {
	case len(labels) == 0:
		return node{exists: true, addrs: s.addrs(), srvs: s.srvs("", "")}
	case len(labels) == 1 && isProto(labels[0]):
		// This name has no records, but names below it may.
		return node{exists: len(s.srvs("", labels[0][1:])) > 0}
	case len(labels) == 2 && isProto(labels[1]) && strings.HasPrefix(labels[0], "_") && len(labels[0]) > 1:
		srvs := s.srvs(labels[0][1:], labels[1][1:])
		return node{exists: len(srvs) > 0, srvs: srvs}
	case len(labels) == 2 && s.Headless:
		addrs := s.endpointAddrs(labels[0], labels[1])
		return node{exists: len(addrs) > 0, addrs: addrs}
	}
	return node{} // including "<cluster>.<service>", which the MCS API reserves
}

func isProto(label string) bool { return label == "_tcp" || label == "_udp" || label == "_sctp" }

// addrs returns the addresses of the service's own name.
func (s Service) addrs() []netip.Addr {
	if !s.Headless {
		return s.IPs
	}
	out := make([]netip.Addr, 0, len(s.Endpoints))
	for _, e := range s.Endpoints {
		out = append(out, e.IP)
	}
	return unique(out)
}

// endpointAddrs returns all addresses of one host of one cluster.
func (s Service) endpointAddrs(host, cluster string) (out []netip.Addr) {
	for _, e := range s.Endpoints {
		if e.label() == host && strings.EqualFold(string(e.Cluster), cluster) {
			out = append(out, e.IP)
		}
	}
	return unique(out)
}

// srvs returns the SRV records of the ports that match, each pair of target and port once. An empty
// name or protocol matches every port, including the unnamed one: this is how CoreDNS answers SRV
// for a service's own name, and the MCS conformance suite expects it.
func (s Service) srvs(name, proto string) (out []srv) {
	matches := func(n, p string) bool {
		return (name == "" || strings.EqualFold(n, name)) && (proto == "" || strings.EqualFold(p, proto))
	}
	index := map[srvKey]int{}
	add := func(port uint16, target string, addrs ...netip.Addr) {
		k := srvKey{port, target}
		i, seen := index[k]
		if !seen {
			i = len(out)
			index[k] = i
			out = append(out, srv{port: port, target: target})
		}
		for _, a := range addrs {
			if !slices.Contains(out[i].addrs, a) {
				out[i].addrs = append(out[i].addrs, a)
			}
		}
	}
	if !s.Headless {
		for _, p := range s.Ports {
			// At a ClusterSetIP, a port that is not balanced is not served.
			if p.Proto.Balanced() && matches(p.Name, p.Proto.String()) {
				add(p.Port, "", s.IPs...)
			}
		}
		return out
	}
	for _, e := range s.Endpoints {
		target := e.label() + "." + strings.ToLower(string(e.Cluster))
		for _, p := range e.Ports {
			if matches(p.Name, p.Proto.String()) {
				add(p.Port, target, e.IP)
			}
		}
	}
	return out
}

type srvKey struct {
	port   uint16
	target string
}

// unique removes duplicates and keeps the order.
func unique(in []netip.Addr) (out []netip.Addr) {
	seen := make(map[netip.Addr]bool, len(in))
	for _, a := range in {
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}
