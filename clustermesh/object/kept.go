package object

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
)

// Service holds what Local reads of a Service: an API server's object takes ten times the memory.
// Invalid values are kept as written, for the Problem.
type Service struct {
	ID
	// derivedFor is the ServiceImport for which strait made the Service; empty for all others. Of a
	// Service that has one, only the addresses, type and annotations are kept.
	derivedFor string
	clusterIP  string
	// uid is kept only of Services that may ask for EndpointSlices: headless ones, and those that
	// an annotation makes global or whose annotation asks.
	uid string
	// clusterIPs is nil if it would hold only clusterIP.
	clusterIPs  []string
	annotations map[string]string
	// labels are all of its labels. Policies select by them.
	labels  map[string]string
	created int64 // in Unix seconds, 0 for none
	ports   []unique.Handle[servicePort]
	traits  unique.Handle[traits]
}

// traits are values that many Services share.
type traits struct {
	kind                 corev1.ServiceType
	families             families
	unknownFamily        string // the first that the Service lists
	affinity             corev1.ServiceAffinity
	affinitySeconds      int32
	policy, distribution string
	// ofImport: another system made it for a ServiceImport, which owns it.
	ofImport bool
}

// servicePort is a port as written.
type servicePort struct {
	name, protocol, appProtocol string
	port                        int32
}

func serviceFrom(in *corev1.Service) *Service {
	spec := &in.Spec
	s := &Service{ID: idOf(in), derivedFor: derivedFor(in), clusterIP: spec.ClusterIP, annotations: in.Annotations, created: createdAt(in)}
	if s.derivedFor == "" && len(in.Labels) > 0 {
		s.labels = make(map[string]string, len(in.Labels))
		for k, v := range in.Labels {
			s.labels[intern(k)] = intern(v)
		}
	}
	for k, v := range s.annotations {
		s.annotations[k] = intern(v)
	}
	if spec.ClusterIP == corev1.ClusterIPNone || slices.ContainsFunc(slices.Concat(globalNames, slicesNames), func(key string) bool { return s.annotations[key] != "" }) {
		s.uid = string(in.UID)
	}
	if len(spec.ClusterIPs) != 1 || spec.ClusterIPs[0] != spec.ClusterIP {
		s.clusterIPs = spec.ClusterIPs
	}
	t := traits{kind: spec.Type}
	if s.derivedFor == "" {
		for _, f := range spec.IPFamilies {
			if !t.families.add(clustermesh.Family(f)) && t.unknownFamily == "" {
				t.unknownFamily = string(f)
			}
		}
		t.affinity, t.affinitySeconds = spec.SessionAffinity, corev1.DefaultClientIPServiceAffinitySeconds
		if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil {
			t.affinitySeconds = deref(c.ClientIP.TimeoutSeconds, t.affinitySeconds)
		}
		t.ofImport = policy.OfImport(in.OwnerReferences)
		t.policy, t.distribution = string(deref(spec.InternalTrafficPolicy, "")), deref(spec.TrafficDistribution, "")
		s.ports = make([]unique.Handle[servicePort], len(spec.Ports))
		for i, p := range spec.Ports {
			s.ports[i] = unique.Make(servicePort{p.Name, string(p.Protocol), deref(p.AppProtocol, ""), p.Port})
		}
	}
	s.traits = unique.Make(t)
	return s
}

func (s *Service) insert(o *Objects) { o.Services = append(o.Services, s) }

// Export holds what Local reads of a ServiceExport.
type Export struct {
	ID
	created             int64             // in Unix seconds, 0 for none
	own                 map[string]string // its own annotations
	labels, annotations map[string]string // those that it exports
}

func exportFrom(in *mcsv1beta1.ServiceExport) *Export {
	return &Export{ID: idOf(in), created: createdAt(in), own: in.Annotations,
		labels: in.Spec.ExportedLabels, annotations: in.Spec.ExportedAnnotations}
}

func (e *Export) insert(o *Objects) { o.Exports = append(o.Exports, e) }

// createdAt returns when an object was created, in Unix seconds, 0 if it has none.
func createdAt(o metav1.Object) int64 {
	if t := o.GetCreationTimestamp(); !t.IsZero() {
		return max(0, t.Unix())
	}
	return 0
}

// Alias is an object of another API group that means the same as a ServiceExport, such as the one
// of net.gke.io. Only its metadata counts.
type Alias struct {
	ID
	kind    string // as Problems name it: "ServiceExport.net.gke.io"
	created int64  // in Unix seconds, 0 for none
}

func aliasFrom(kind string) func(metav1.Object) *Alias {
	return func(in metav1.Object) *Alias { return &Alias{ID: idOf(in), kind: kind, created: createdAt(in)} }
}

func (a *Alias) insert(o *Objects) { o.Aliases = append(o.Aliases, a) }

// Import holds what Local reads of a ServiceImport, of the MCS API's group or another.
type Import struct {
	ID
	kind string // as Problems name it
	ours bool   // strait made it
}

func importFrom(in *mcsv1beta1.ServiceImport) *Import {
	return &Import{ID: idOf(in), kind: "ServiceImport", ours: in.Labels[LabelManagedBy] == ManagedBy}
}

// importByUser is for kinds of other API groups in which strait makes no imports.
func importByUser(kind string) func(metav1.Object) *Import {
	return func(in metav1.Object) *Import { return &Import{ID: idOf(in), kind: kind} }
}

func (i *Import) insert(o *Objects) { o.ServiceImports = append(o.ServiceImports, i) }

// families are IP families in order, followed by empty ones.
type families [2]clustermesh.Family

// add appends a family, unless it is there already. It reports whether the family is IPv4 or IPv6;
// no other is added.
func (f *families) add(family clustermesh.Family) bool {
	if family != clustermesh.IPv4 && family != clustermesh.IPv6 {
		return false
	}
	if i := slices.Index(f[:], ""); i >= 0 && !slices.Contains(f[:], family) {
		f[i] = family
	}
	return true
}

var familyLists = map[families][]clustermesh.Family{
	{clustermesh.IPv4}:                   {clustermesh.IPv4},
	{clustermesh.IPv6}:                   {clustermesh.IPv6},
	{clustermesh.IPv4, clustermesh.IPv6}: {clustermesh.IPv4, clustermesh.IPv6},
	{clustermesh.IPv6, clustermesh.IPv4}: {clustermesh.IPv6, clustermesh.IPv4},
}

// list returns the families, nil for none. Equal families share one list.
func (f families) list() []clustermesh.Family { return familyLists[f] }
