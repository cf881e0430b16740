package mcs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// fit returns an import without what an API server would refuse, and a warning for each field that
// is left out. Values come from other clusters, of which some have no API server and others a newer
// one; without fit, one of them would keep a whole object from being written. The rules are those
// of Kubernetes' validation of Services and EndpointSlices; what earlier checks have ruled out is
// not checked again (record.Usable: addresses, numbers of ports, time-outs).
func fit(i Import) (Import, []clustermesh.Problem) {
	f := &fitting{object: i.Service.Ref("ServiceImport"), faults: map[fieldValue][]string{},
		try: "correct it where the Service is exported; the rest of the import works"}
	i.Labels = f.exported("labels", i.Labels, validation.IsValidLabelValue)
	i.Annotations = f.exported("annotations", i.Annotations, nil)
	i.InternalTrafficPolicy = f.oneOf("internalTrafficPolicy", i.InternalTrafficPolicy,
		string(corev1.ServiceInternalTrafficPolicyCluster), string(corev1.ServiceInternalTrafficPolicyLocal))
	i.TrafficDistribution = f.oneOf("trafficDistribution", i.TrafficDistribution,
		corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
	i.Ports = replaced(i.Ports, f.port)
	i.Endpoints = replaced(i.Endpoints, f.endpoint)
	i.Backends = replaced(i.Backends, f.backend)
	return i, f.list()
}

// fitGlobal is fit for the endpoints of a global Service.
func fitGlobal(g Global) (Global, []clustermesh.Problem) {
	f := &fitting{object: g.Service.Ref("Service"), faults: map[fieldValue][]string{}, try: "correct it in the cluster that the endpoint is in; the others are listed"}
	g.Endpoints = replaced(g.Endpoints, f.endpoint)
	return g, f.list()
}

// fitAsked returns the spec of a user's import without what an API server would refuse in the
// Service that is derived from it: the CRD lets users write much more. A traffic distribution
// stays, because a newer API server may know more of them than this build; see known.
func fitAsked(i *mcsv1beta1.ServiceImport) (mcsv1beta1.ServiceImportSpec, []clustermesh.Problem) {
	f := &fitting{object: problem.Object("ServiceImport", i.Namespace, i.Name), faults: map[fieldValue][]string{}, try: "correct it in the ServiceImport; the rest of it works"}
	spec := *i.Spec.DeepCopy()
	spec.Ports = nil
	for _, p := range i.Spec.Ports {
		if p, ok := f.asked(p, spec.Ports); ok {
			spec.Ports = append(spec.Ports, p)
		}
	}
	spec.SessionAffinity = corev1.ServiceAffinity(f.oneOf("spec.sessionAffinity", string(spec.SessionAffinity),
		string(corev1.ServiceAffinityClientIP), string(corev1.ServiceAffinityNone)))
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		const field, most = "spec.sessionAffinityConfig.clientIP.timeoutSeconds", 86400
		if seconds := *c.ClientIP.TimeoutSeconds; !f.valid(field, strconv.Itoa(int(seconds)), func(string) []string {
			return validation.IsInRange(int(seconds), 1, most)
		}) {
			spec.SessionAffinityConfig = nil
		}
	}
	policy := f.oneOf("spec.internalTrafficPolicy", string(deref(spec.InternalTrafficPolicy)),
		string(corev1.ServiceInternalTrafficPolicyCluster), string(corev1.ServiceInternalTrafficPolicyLocal))
	spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicy(policy))
	return spec, f.list()
}

// asked returns a port of a user's import as a Service can have it beside others; false if it
// cannot.
func (f *fitting) asked(p mcsv1beta1.ServicePort, others []mcsv1beta1.ServicePort) (mcsv1beta1.ServicePort, bool) {
	proto, err := l4.ParseProto(string(p.Protocol))
	if !f.valid("spec.ports.port", strconv.Itoa(int(p.Port)), func(string) []string { return validation.IsValidPortNum(int(p.Port)) }) ||
		!f.valid("spec.ports.protocol", string(p.Protocol), func(string) []string { return messages(err) }) {
		return p, false
	}
	p.Protocol = corev1.Protocol(proto.String())
	if !f.valid("spec.ports.name", p.Name, validation.IsDNS1123Label) {
		p.Name = ""
	}
	if !f.valid("spec.ports.appProtocol", deref(p.AppProtocol), validation.IsQualifiedName) {
		p.AppProtocol = nil
	}
	repeats := slices.ContainsFunc(others, func(q mcsv1beta1.ServicePort) bool {
		return p.Name != "" && q.Name == p.Name || q.Port == p.Port && q.Protocol == p.Protocol
	})
	return p, !repeats || f.valid("spec.ports", fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol), func(string) []string {
		return []string{"it repeats the name or number of another port"}
	})
}

func messages(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

// fitting collects what is left out.
type fitting struct {
	object problem.Ref
	try    string
	// faults are those of each value that a field has; nil if it has none.
	faults map[fieldValue][]string
	bad    []fieldValue // in the order in which they were met
}

type fieldValue struct{ field, value string }

// valid reports whether a value is empty or has no faults.
func (f *fitting) valid(field, value string, faults func(string) []string) bool {
	if value == "" {
		return true
	}
	v := fieldValue{field, value}
	found, met := f.faults[v]
	if !met {
		found = faults(value)
		f.faults[v] = found
		if len(found) > 0 {
			f.bad = append(f.bad, v)
		}
	}
	return len(found) == 0
}

// list returns a Problem for each field of which values are left out. It names the first.
func (f *fitting) list() (out []clustermesh.Problem) {
	for n, v := range f.bad {
		same := func(o fieldValue) bool { return o.field == v.field }
		if slices.ContainsFunc(f.bad[:n], same) {
			continue
		}
		what := fmt.Sprintf("%q", v.value)
		if more := len(slices.DeleteFunc(slices.Clone(f.bad[n+1:]), func(o fieldValue) bool { return !same(o) })); more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		rule, _, _ := strings.Cut(f.faults[v][0], " (e.g. ") // which goes on with a regular expression
		out = append(out, f.object.Problem(clustermesh.Problem{
			Code: problem.ImportLowered, Field: v.field, Warning: true,
			Message: fmt.Sprintf("%s: left out, because the API server would refuse it (%s)", what, rule),
			Try:     f.try,
		}))
	}
	return out
}

func (f *fitting) oneOf(field, value string, known ...string) string {
	if !f.valid(field, value, func(v string) []string {
		if slices.Contains(known, v) {
			return nil
		}
		return []string{"known are " + strings.Join(known, ", ")}
	}) {
		return ""
	}
	return value
}

func (f *fitting) exported(field string, m map[string]string, faults func(string) []string) map[string]string {
	out := m
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if f.valid(field, k, validation.IsQualifiedName) && (faults == nil || f.valid(field, m[k], faults)) {
			continue
		}
		if len(out) == len(m) {
			out = maps.Clone(m)
		}
		delete(out, k)
	}
	return out
}

// port keeps a port without a name or application protocol that it cannot have: it can be called by
// its number. Without its protocol, it would be another port.
func (f *fitting) port(p clustermesh.ServicePort) (clustermesh.ServicePort, bool) {
	if !f.valid("ports.name", p.Name, validation.IsDNS1123Label) {
		p.Name = ""
	}
	if !f.valid("ports.appProtocol", p.AppProtocol, validation.IsQualifiedName) {
		p.AppProtocol = ""
	}
	return p, f.protocol("ports.protocol", p.Proto)
}

// protocol reports whether a Service can have a port of a protocol.
func (f *fitting) protocol(field string, p l4.Proto) bool {
	return f.valid(field, p.String(), func(s string) []string {
		_, err := l4.ParseProto(s)
		return messages(err)
	})
}

// endpoint leaves out an endpoint of a cluster whose name cannot be an id (KEP-2149): its slices
// have it as a label, and hints as part of a node's name.
func (f *fitting) endpoint(e clustermesh.ClusterEndpoint) (clustermesh.ClusterEndpoint, bool) {
	if !f.valid("endpoints.hostname", e.Hostname, validation.IsDNS1123Label) {
		e.Hostname = ""
	}
	if !f.valid("endpoints.zone", e.Zone, validation.IsValidLabelValue) {
		e.Zone = ""
	}
	e.Ports = replaced(e.Ports, func(p clustermesh.EndpointPort) (clustermesh.EndpointPort, bool) {
		if !f.valid("endpoints.ports.name", p.Name, validation.IsDNS1123Label) {
			p.Name = ""
		}
		return p, f.protocol("endpoints.ports.protocol", p.Proto)
	})
	return e, f.valid("endpoints.cluster", string(e.Cluster), validation.IsDNS1123Label)
}

func (f *fitting) backend(b Backend) (Backend, bool) {
	var ok bool
	b.Port, ok = f.port(b.Port)
	if !f.valid("endpoints.zone", b.Zone, validation.IsValidLabelValue) {
		b.Zone = ""
	}
	return b, ok && f.valid("endpoints.cluster", string(b.Cluster), validation.IsDNS1123Label)
}

// replaced returns the list with what fit makes of its elements, without those for which it returns
// false. The list itself stays as it is.
func replaced[T any](list []T, fit func(T) (T, bool)) []T {
	out := make([]T, 0, len(list))
	for _, e := range list {
		if e, ok := fit(e); ok {
			out = append(out, e)
		}
	}
	return out
}
