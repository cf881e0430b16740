package object

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/internal/problem"
)

// Marks of the objects that strait itself writes into a cluster.
const (
	// LabelManagedBy has the value ManagedBy on all of them except EndpointSlices.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "strait"
	// LabelServiceImport names the ServiceImport, of the same namespace, that a derived Service and
	// its EndpointSlices belong to.
	LabelServiceImport = "strait.io/service-import"
	// LabelGlobalService names the global Service, of the same namespace, that an EndpointSlice
	// with other clusters' endpoints belongs to.
	LabelGlobalService = "strait.io/global-service"
	// LabelPolicySet distinguishes the mirrors of one set of policies from those of another. Those that the
	// daemon makes have the value DaemonsPolicySet.
	LabelPolicySet   = "strait.io/policy-set"
	DaemonsPolicySet = "daemon"
	// SliceManager is the value of endpointslice.kubernetes.io/managed-by on EndpointSlices.
	SliceManager = "strait.io"
)

// IsServiceName reports whether a name is valid for a Service in every version of Kubernetes.
func IsServiceName(name string) bool { return len(validation.IsDNS1035Label(name)) == 0 }

// derivedFor returns the name of the ServiceImport for which strait made a Service; empty for all
// other Services.
func derivedFor(s *corev1.Service) string {
	if s.Labels[LabelManagedBy] != ManagedBy {
		return ""
	}
	name := s.Labels[LabelServiceImport]
	if strings.HasSuffix(s.Name, name) {
		return s.Name[len(s.Name)-len(name):] // share the memory of the name
	}
	return name
}

// elsewhere reports whether another system made the Service of another cluster's, or for a
// ServiceImport.
func (s *Service) elsewhere() bool { return s.traits.Value().ofImport || policy.Mirrored(s.labels) }

// readAllocations returns the addresses of derived Services, which are the ClusterSetIPs of their
// imports, in the order of the Service's families. If an import has two derived Services, the first
// by name that has addresses counts.
func (l *reader) readAllocations() (out []clustermesh.Allocation) {
	all := 0
	for _, s := range l.services {
		if s.derivedFor != "" {
			all += max(1, len(s.clusterIPs))
		}
	}
	out = make([]clustermesh.Allocation, 0, all)
	seen := make(map[clustermesh.ServiceName]bool, all)
	for _, s := range l.services {
		name := clustermesh.ServiceName{Namespace: s.Namespace, Name: s.derivedFor}
		if name.Name == "" || seen[name] || l.barred.Why(name) != "" {
			continue
		}
		ips := clusterIPs(s, l.report.on("Service", s.Namespace, s.Name))
		seen[name] = len(ips) > 0
		for _, ip := range ips {
			out = append(out, clustermesh.Allocation{Service: name, IP: ip})
		}
	}
	slices.SortStableFunc(out, func(a, b clustermesh.Allocation) int { return a.Service.Compare(b.Service) })
	return orNil(out)
}

// allClusterIPs returns ranges that hold the ClusterIPs of all Services. An address that cannot be
// read is reported where its Service counts.
func (l *reader) allClusterIPs() []netip.Prefix {
	ips, unsaid := make([]netip.Addr, 0, len(l.services)), (&report{}).on("Service", "", "")
	for _, s := range l.services {
		ips = append(ips, clusterIPs(s, unsaid)...)
	}
	return clustermesh.Around(ips)
}

// clusterIPs returns the Service's own addresses, the preferred family first. There are none if it
// is headless or has not been given any yet.
func clusterIPs(s *Service, o *objectReport) (out []netip.Addr) {
	texts := s.clusterIPs
	if len(texts) == 0 {
		texts = []string{s.clusterIP}
	}
	for i, text := range texts {
		if text == "" || text == corev1.ClusterIPNone {
			continue
		}
		ip, err := parseHost(text)
		if err != nil {
			o.problem(problem.ValueInvalid, at("spec.clusterIPs[%d]", i), err.Error(), "write an address such as 10.96.0.10")
			continue
		}
		out = append(out, ip)
	}
	return out
}

// importProblems reports ServiceImports that people made where imports are barred.
func (l *reader) importProblems(objs Objects) {
	for _, i := range objs.ServiceImports {
		if why := l.barred.Why(i.service()); why != "" && !i.ours {
			l.report.on(i.kind, i.Namespace, i.Name).warning(problem.ImportBarred, "metadata", fmt.Sprintf("%s: not imported", why),
				"delete the ServiceImport, or import a Service of another namespace")
		}
	}
}
