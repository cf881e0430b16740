package object

import (
	"fmt"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// readService returns what an export or a global service takes from its Service, and whether the
// Service can be used.
//
// A headless Service needs no ports: the API allows that, and its pods still have names and
// addresses.
func readService(s *Service, o *objectReport) (clustermesh.Export, bool) {
	e := clustermesh.Export{
		Type:                  clustermesh.ClusterSetIP,
		InternalTrafficPolicy: readPolicy(s.traits.Value().policy, o),
		TrafficDistribution:   readDistribution(s.traits.Value().distribution, o),
	}
	checkFamilies(s.traits.Value(), o)
	if s.clusterIP == corev1.ClusterIPNone {
		// Session affinity is for whatever balances connections, and nothing balances those of a
		// headless Service.
		e.Type = clustermesh.Headless
	} else {
		e.AffinitySeconds = readAffinity(s.traits.Value(), o)
	}
	if len(s.ports) == 0 {
		if e.Type != clustermesh.Headless {
			o.problem(problem.ExportImpossible, "spec.ports", "the Service has no ports: not offered to other clusters", "add at least one port")
		}
		return e, e.Type == clustermesh.Headless
	}
	e.Ports = readPorts(s.ports, o)
	if len(e.Ports) == 0 {
		o.problem(problem.ExportImpossible, "spec.ports", "no port of the Service can be used: not offered to other clusters", "correct its ports")
	}
	return e, len(e.Ports) > 0
}

// readPolicy returns spec.internalTrafficPolicy as written, or "" if it is invalid.
func readPolicy(p string, o *objectReport) string {
	if p != "" && p != clustermesh.PolicyCluster && p != clustermesh.PolicyLocal {
		o.problem(problem.ValueInvalid, "spec.internalTrafficPolicy", fmt.Sprintf("%q is not a traffic policy: Cluster is used", p), "write Cluster or Local")
		return ""
	}
	return p
}

// readDistribution returns spec.trafficDistribution as written, or "" if it is unknown.
func readDistribution(d string, o *objectReport) string {
	switch d {
	case "", clustermesh.PreferSameNode, clustermesh.PreferSameZone, clustermesh.PreferClose:
		return d
	default:
		o.warning(problem.ValueInvalid, "spec.trafficDistribution", fmt.Sprintf("%q is not known: not used", d), "write PreferSameZone or PreferSameNode")
		return ""
	}
}

// checkFamilies reports a family that is unknown.
func checkFamilies(t traits, o *objectReport) {
	if t.unknownFamily != "" {
		o.warning(problem.ValueInvalid, "spec.ipFamilies", fmt.Sprintf("%q is not an IP family: not used", t.unknownFamily), "write IPv4 or IPv6")
	}
}

// readFamilies returns a Service's IP families: those that it lists, otherwise those of its
// addresses, otherwise those of its endpoints. An API server always lists them; a hand-written file
// may not. Declared is false if they are those of the endpoints.
func readFamilies(s *Service, endpoints []clustermesh.Endpoint) (list []clustermesh.Family, declared bool) {
	out := s.traits.Value().families
	if out == (families{}) {
		for _, text := range append([]string{s.clusterIP}, s.clusterIPs...) {
			if ip, err := parseHost(text); err == nil {
				out.add(clustermesh.FamilyOf(ip))
			}
		}
	}
	if declared = out != (families{}); !declared {
		// The endpoints are sorted by address: IPv4 comes first.
		for _, e := range endpoints {
			out.add(clustermesh.FamilyOf(e.Addr))
		}
	}
	return out.list(), declared
}

// maxAffinitySeconds is a day, Kubernetes' own limit.
const maxAffinitySeconds = 86400

// readAffinity returns the ClientIP affinity time-out in seconds, 0 for no affinity.
func readAffinity(t traits, o *objectReport) uint32 {
	switch t.affinity {
	case "", corev1.ServiceAffinityNone:
		return 0
	case corev1.ServiceAffinityClientIP:
	default:
		o.problem(problem.ValueInvalid, "spec.sessionAffinity", fmt.Sprintf("%q is not a session affinity: none is used", t.affinity),
			"write ClientIP or None")
		return 0
	}
	seconds := t.affinitySeconds
	if seconds < 1 || seconds > maxAffinitySeconds {
		o.problem(problem.ValueInvalid, "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
			fmt.Sprintf("%d is out of range: %d is used", seconds, corev1.DefaultClientIPServiceAffinitySeconds),
			fmt.Sprintf("write 1 to %d", maxAffinitySeconds))
		return uint32(corev1.DefaultClientIPServiceAffinitySeconds)
	}
	return uint32(seconds)
}

// readPorts returns the usable ports in the Service's order. In the result names are unique, and so
// are pairs of protocol and number, because endpoints and clients find a port by either.
func readPorts(ports []unique.Handle[servicePort], o *objectReport) (out []clustermesh.ServicePort) {
	for i, h := range ports {
		p := h.Value()
		field := func(name string) string { return at("spec.ports[%d].%s", i, name) }
		proto, err := l4.ParseProto(p.protocol)
		switch {
		case err != nil:
			o.problem(problem.ValueInvalid, field("protocol"), err.Error()+": port not used", "write TCP or UDP")
			continue
		case p.port < 1 || p.port > 65535:
			o.problem(problem.ValueInvalid, field("port"), fmt.Sprintf("%d is not a port: not used", p.port), "write 1 to 65535")
			continue
		case p.name == "" && len(ports) > 1:
			o.problem(problem.ValueInvalid, field("name"), "in a Service with several ports, each needs a name: port not used", "name every port")
			continue
		case p.name != "" && len(validation.IsDNS1123Label(p.name)) > 0:
			o.problem(problem.ValueInvalid, field("name"), fmt.Sprintf("%q is not a port name: not used", p.name), "use lower case letters, digits and -")
			continue
		}
		port := clustermesh.ServicePort{Name: p.name, Proto: proto, Port: uint16(p.port), AppProtocol: p.appProtocol}
		if port.AppProtocol != "" && len(validation.IsQualifiedName(port.AppProtocol)) > 0 {
			o.problem(problem.ValueInvalid, field("appProtocol"), fmt.Sprintf("%q is not an application protocol: left out", port.AppProtocol), "write a name such as http or kubernetes.io/h2c")
			port.AppProtocol = ""
		}
		if same := slices.IndexFunc(out, func(q clustermesh.ServicePort) bool {
			return q.Name == port.Name || q.Proto == port.Proto && q.Port == port.Port
		}); same >= 0 {
			o.problem(problem.PortRepeated, at("spec.ports[%d]", i), fmt.Sprintf("port %s repeats the name or number of port %s: not used", port, out[same]),
				"give every port its own name and number")
			continue
		}
		if proto == l4.SCTP {
			o.warning(problem.PortNotServed, field("protocol"), "SCTP is not served by socket load balancing; the other ports are",
				"reach this port at the pods' own addresses")
		}
		out = append(out, port)
	}
	return out
}
