package object

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// readExports returns the exports sorted by service: one per ServiceExport whose Service can be exported.
func readExports(objs []*mcsv1beta1.ServiceExport, services []*corev1.Service, r *report) []clustermesh.Export {
	byName := map[clustermesh.ServiceName]*corev1.Service{}
	for _, s := range services {
		if name := (clustermesh.ServiceName{Namespace: s.Namespace, Name: s.Name}); byName[name] == nil {
			byName[name] = s
		}
	}
	seen := map[clustermesh.ServiceName]bool{}
	var out []clustermesh.Export
	for _, obj := range objs {
		name := clustermesh.ServiceName{Namespace: obj.Namespace, Name: obj.Name}
		if seen[name] {
			continue
		}
		seen[name] = true
		if e, ok := readExport(obj, name, byName[name], r); ok {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b clustermesh.Export) int { return a.Service.Compare(b.Service) })
	return out
}

func readExport(obj *mcsv1beta1.ServiceExport, name clustermesh.ServiceName, service *corev1.Service, r *report) (clustermesh.Export, bool) {
	none := clustermesh.Export{}
	o := r.on("ServiceExport", name.Namespace, name.Name)
	if barred(name) {
		o.warning("metadata", "Services of the cluster itself are barred: not exported",
			"delete the ServiceExport, or export a Service of another namespace")
		return none, false
	}
	for _, part := range []struct{ field, text string }{
		{"metadata.namespace", name.Namespace}, {"metadata.name", name.Name},
	} {
		// Both become labels of a DNS name.
		if msgs := validation.IsDNS1123Label(part.text); len(msgs) > 0 {
			o.problem(part.field, fmt.Sprintf("%q cannot be part of a DNS name: not exported", part.text), msgs[0])
			return none, false
		}
	}
	if service == nil {
		o.warning("", "there is no Service of this name: nothing is exported",
			fmt.Sprintf("create Service %s, or delete the ServiceExport", name))
		return none, false
	}
	e, ok := readService(service, r.on("Service", name.Namespace, name.Name))
	e.Service = name
	if !obj.CreationTimestamp.IsZero() {
		e.Created = max(0, obj.CreationTimestamp.Unix())
	}
	return e, ok
}

// readService returns what a Service gives to its export, and whether it can be exported.
func readService(s *corev1.Service, o *objectReport) (clustermesh.Export, bool) {
	e := clustermesh.Export{Type: clustermesh.ClusterSetIP}
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		o.problem("spec.type", "a Service of type ExternalName cannot be exported",
			"use another type, or delete the ServiceExport")
		return e, false
	case s.Spec.ClusterIP == corev1.ClusterIPNone:
		// Session affinity is the business of who balances; nobody does for a headless Service.
		e.Type = clustermesh.Headless
	default:
		e.AffinitySeconds = readAffinity(s, o)
	}
	if len(s.Spec.Ports) == 0 {
		o.problem("spec.ports", "the Service has no ports: not exported", "add at least one port")
		return e, false
	}
	e.Ports = readPorts(s.Spec.Ports, o)
	if len(e.Ports) == 0 {
		o.problem("spec.ports", "no port of the Service can be used: not exported", "correct its ports")
	}
	return e, len(e.Ports) > 0
}

// maxAffinitySeconds is a day, Kubernetes' own limit.
const maxAffinitySeconds = 86400

// readAffinity returns the ClientIP affinity time-out in seconds, 0 for no affinity.
func readAffinity(s *corev1.Service, o *objectReport) uint32 {
	switch s.Spec.SessionAffinity {
	case "", corev1.ServiceAffinityNone:
		return 0
	case corev1.ServiceAffinityClientIP:
	default:
		o.problem("spec.sessionAffinity", fmt.Sprintf("%q is no session affinity: none is used", s.Spec.SessionAffinity),
			"write ClientIP or None")
		return 0
	}
	c := s.Spec.SessionAffinityConfig
	if c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
		return uint32(corev1.DefaultClientIPServiceAffinitySeconds)
	}
	seconds := *c.ClientIP.TimeoutSeconds
	if seconds < 1 || seconds > maxAffinitySeconds {
		o.problem("spec.sessionAffinityConfig.clientIP.timeoutSeconds",
			fmt.Sprintf("%d is out of range: %d is used", seconds, corev1.DefaultClientIPServiceAffinitySeconds),
			fmt.Sprintf("write 1 to %d", maxAffinitySeconds))
		return uint32(corev1.DefaultClientIPServiceAffinitySeconds)
	}
	return uint32(seconds)
}

// readPorts returns the usable ports in the Service's order. Names, and pairs of protocol and number, are
// unique in the result, since endpoints and clients find a port by either.
func readPorts(ports []corev1.ServicePort, o *objectReport) (out []clustermesh.ServicePort) {
	for i, p := range ports {
		field := func(name string) string { return at("spec.ports[%d].%s", i, name) }
		proto, err := l4.ParseProto(string(p.Protocol))
		switch {
		case err != nil:
			o.problem(field("protocol"), err.Error()+": port not used", "write TCP or UDP")
			continue
		case p.Port < 1 || p.Port > 65535:
			o.problem(field("port"), fmt.Sprintf("%d is not a port: not used", p.Port), "write 1 to 65535")
			continue
		case p.Name == "" && len(ports) > 1:
			o.problem(field("name"), "a port of a Service with several needs a name: not used", "name every port")
			continue
		case p.Name != "" && len(validation.IsDNS1123Label(p.Name)) > 0:
			o.problem(field("name"), fmt.Sprintf("%q is not a port name: not used", p.Name), "use lower case letters, digits and -")
			continue
		}
		port := clustermesh.ServicePort{Name: p.Name, Proto: proto, Port: uint16(p.Port), AppProtocol: deref(p.AppProtocol, "")}
		if same := slices.IndexFunc(out, func(q clustermesh.ServicePort) bool {
			return q.Name == port.Name || q.Proto == port.Proto && q.Port == port.Port
		}); same >= 0 {
			o.problem(at("spec.ports[%d]", i), fmt.Sprintf("port %s repeats the name or number of port %s: not used", port, out[same]),
				"give every port its own name and number")
			continue
		}
		if proto == l4.SCTP {
			o.warning(field("protocol"), "SCTP is not served by socket load balancing; the other ports are",
				"reach this port by the pods' own addresses")
		}
		out = append(out, port)
	}
	return out
}
