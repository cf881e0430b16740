package object

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
)

// ID names an object among those of its kind.
type ID struct{ Namespace, Name string }

// GetNamespace is as that of metav1.Object.
func (i ID) GetNamespace() string { return i.Namespace }

// GetName is as that of metav1.Object.
func (i ID) GetName() string { return i.Name }

func (i ID) service() clustermesh.ServiceName { return clustermesh.ServiceName(i) }

// Service is what Local reads of a Service: an API server's takes ten times the memory. What is wrong with it is kept as it
// is written, for the Problem.
type Service struct {
	ID
	// derivedFor is the ServiceImport for which strait made the Service; empty for all others. Of one with it no more is
	// kept than its addresses, type and annotations.
	derivedFor string
	clusterIP  string
	// clusterIPs is nil where it would be clusterIP alone.
	clusterIPs  []string
	annotations map[string]string // those of globalNames, sharedNames and affinityNames
	ports       []unique.Handle[servicePort]
	traits      unique.Handle[traits]
}

// traits are what many Services have in common.
type traits struct {
	kind                 corev1.ServiceType
	families             families
	affinity             corev1.ServiceAffinity
	affinitySeconds      int32
	policy, distribution string
}

// servicePort is a port as it is written.
type servicePort struct {
	name, protocol, appProtocol string
	port                        int32
}

// ServiceFrom makes a Service of an API server's, of which it may keep parts.
func ServiceFrom(in *corev1.Service) *Service {
	spec := &in.Spec
	s := &Service{ID: ID{intern(in.Namespace), in.Name}, derivedFor: derivedFor(in), clusterIP: spec.ClusterIP, annotations: readAnnotations(in.Annotations)}
	if len(spec.ClusterIPs) != 1 || spec.ClusterIPs[0] != spec.ClusterIP {
		s.clusterIPs = spec.ClusterIPs
	}
	t := traits{kind: spec.Type}
	if s.derivedFor == "" {
		for _, f := range spec.IPFamilies {
			t.families.add(clustermesh.Family(f))
		}
		t.affinity, t.affinitySeconds = spec.SessionAffinity, corev1.DefaultClientIPServiceAffinitySeconds
		if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil {
			t.affinitySeconds = deref(c.ClientIP.TimeoutSeconds, t.affinitySeconds)
		}
		t.policy, t.distribution = string(deref(spec.InternalTrafficPolicy, "")), deref(spec.TrafficDistribution, "")
		s.ports = make([]unique.Handle[servicePort], len(spec.Ports))
		for i, p := range spec.Ports {
			s.ports[i] = unique.Make(servicePort{p.Name, string(p.Protocol), deref(p.AppProtocol, ""), p.Port})
		}
	}
	s.traits = unique.Make(t)
	return s
}

// readAnnotations leaves what somebody reads.
func readAnnotations(in map[string]string) (out map[string]string) {
	for _, names := range [][]string{globalNames, sharedNames, affinityNames} {
		for _, n := range names {
			if v, ok := in[n]; ok {
				if out == nil {
					out = map[string]string{}
				}
				out[n] = intern(v)
			}
		}
	}
	return out
}

// Export is what Local reads of a ServiceExport.
type Export struct {
	ID
	created             int64 // in Unix seconds, 0 for none
	labels, annotations map[string]string
}

// ExportFrom makes an Export of an API server's, of which it may keep parts.
func ExportFrom(in *mcsv1beta1.ServiceExport) *Export {
	e := &Export{ID: ID{intern(in.Namespace), in.Name}, labels: in.Spec.ExportedLabels, annotations: in.Spec.ExportedAnnotations}
	if !in.CreationTimestamp.IsZero() {
		e.created = max(0, in.CreationTimestamp.Unix())
	}
	return e
}

// Import is what Local reads of a ServiceImport.
type Import struct {
	ID
	ours bool // strait made it
}

// ImportFrom makes an Import of an API server's.
func ImportFrom(in *mcsv1beta1.ServiceImport) *Import {
	return &Import{ID: ID{intern(in.Namespace), in.Name}, ours: in.Labels[LabelManagedBy] == ManagedBy}
}

// families are IP families in order; empty after the last.
type families [2]clustermesh.Family

// add adds a family that is one, once.
func (f *families) add(family clustermesh.Family) {
	if i := slices.Index(f[:], ""); i >= 0 && !slices.Contains(f[:], family) && (family == clustermesh.IPv4 || family == clustermesh.IPv6) {
		f[i] = family
	}
}

var familyLists = map[families][]clustermesh.Family{
	{clustermesh.IPv4}:                   {clustermesh.IPv4},
	{clustermesh.IPv6}:                   {clustermesh.IPv6},
	{clustermesh.IPv4, clustermesh.IPv6}: {clustermesh.IPv4, clustermesh.IPv6},
	{clustermesh.IPv6, clustermesh.IPv4}: {clustermesh.IPv6, clustermesh.IPv4},
}

// list returns the families, nil for none. All equal ones are one list.
func (f families) list() []clustermesh.Family { return familyLists[f] }

// intern makes one string of all equal ones: for those that are few and repeat.
func intern[S ~string](s S) S { return unique.Make(s).Value() }
