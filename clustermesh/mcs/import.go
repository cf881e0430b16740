package mcs

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

// createImport creates the import. If the import has to wait for the address of a derived Service,
// an apply will follow in any case. Then it is created with only those fields that every apply has,
// because a field that a later apply leaves out would keep the value from the Create.
func (d *differ) createImport() {
	want := prune(d.have.API.Imports, d.wantImport(nil))
	if d.wantsService(false) {
		want = &mcsv1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: want.Namespace, Name: want.Name, Labels: map[string]string{object.LabelManagedBy: object.ManagedBy},
			},
			Spec: mcsv1beta1.ServiceImportSpec{Type: want.Spec.Type, Ports: want.Spec.Ports},
		}
	}
	d.do(written.Op{Verb: written.Create, Kind: written.ServiceImport, Object: want})
}

// importType returns the type that the import has or will get. A user's import states its own.
func (d *differ) importType() clustermesh.ServiceType {
	if d.have.Import != nil && (!OurImport(d.have.Import) || !d.wanted) {
		return clustermesh.ServiceType(d.have.Import.Spec.Type)
	}
	return d.imp.Type
}

// wantImport returns the import as it should be; service is the wanted derived Service, or nil.
func (d *differ) wantImport(service *corev1.Service) *mcsv1beta1.ServiceImport {
	i := d.imp
	out := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.name.Namespace, Name: d.name.Name,
			Labels: exported(i.Labels), Annotations: exported(i.Annotations),
		},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type:                  mcsv1beta1.ServiceImportType(i.Type),
			Ports:                 []mcsv1beta1.ServicePort{}, // the API refuses null
			InternalTrafficPolicy: ptr(corev1.ServiceInternalTrafficPolicy(i.InternalTrafficPolicy)),
			TrafficDistribution:   ptr(i.TrafficDistribution),
		},
	}
	out.Labels[object.LabelManagedBy] = object.ManagedBy
	for _, p := range i.Ports {
		out.Spec.Ports = append(out.Spec.Ports, mcsv1beta1.ServicePort{
			Name: p.Name, Protocol: corev1.Protocol(p.Proto.String()), Port: int32(p.Port), AppProtocol: ptr(p.AppProtocol),
		})
	}
	if i.Type == clustermesh.ClusterSetIP {
		out.Spec.SessionAffinity, out.Spec.SessionAffinityConfig = affinity(i.AffinitySeconds)
	}
	if service != nil {
		out.Annotations[DerivedAnnotation] = service.Name
	}
	out.Spec.IPs, out.Spec.IPFamilies = d.addresses(service)
	return out
}

// exported returns a user's labels or annotations without the keys that mark what belongs to
// strait.
func exported(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if k != object.LabelManagedBy && k != DerivedAnnotation && !strings.HasPrefix(k, "strait.io/") {
			out[k] = v
		}
	}
	return out
}

func affinity(seconds uint32) (corev1.ServiceAffinity, *corev1.SessionAffinityConfig) {
	if seconds == 0 {
		return corev1.ServiceAffinityNone, nil
	}
	s := int32(seconds)
	return corev1.ServiceAffinityClientIP, &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &s}}
}

// addresses returns the import's ClusterSetIPs and their families, in the same order. There is
// always a family, because consumers wait for one.
func (d *differ) addresses(service *corev1.Service) ([]string, []corev1.IPFamily) {
	var ips []netip.Addr
	if d.importType() == clustermesh.ClusterSetIP {
		if d.view.Config.derived() {
			ips = d.clusterIPs(service)
		} else {
			ips = slices.Clone(d.imp.IPs)
			slices.SortStableFunc(ips, func(a, b netip.Addr) int { return d.rank(a) - d.rank(b) })
		}
	}
	var out []string
	var families []corev1.IPFamily
	for _, ip := range ips {
		// One address per family.
		if f := corev1.IPFamily(clustermesh.FamilyOf(ip)); !slices.Contains(families, f) {
			out = append(out, ip.String())
			families = append(families, f)
		}
	}
	if len(families) > 0 {
		return out, families
	}
	for _, f := range d.imp.Families {
		families = append(families, corev1.IPFamily(f))
	}
	if len(families) == 0 {
		families = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return nil, families
}

// rank returns the position of an address's family in the import's families.
func (d *differ) rank(a netip.Addr) int {
	if i := slices.Index(d.imp.Families, clustermesh.FamilyOf(a)); i >= 0 {
		return i
	}
	return len(d.imp.Families)
}

// importSpec writes the import's spec and metadata if they differ. In a user's import it writes
// only ips and the annotation, without force.
func (d *differ) importSpec(service *corev1.Service) {
	have := d.have.Import
	if !OurImport(have) {
		d.userImport(service)
		return
	}
	want := prune(d.have.API.Imports, d.wantImport(service))
	if sameImport(have, want) {
		return
	}
	want.UID = have.UID
	d.settling = true
	d.do(written.Op{Verb: written.Apply, Kind: written.ServiceImport, Object: want, Force: true})
}

func (d *differ) userImport(service *corev1.Service) {
	have := d.have.Import
	want := &mcsv1beta1.ServiceImport{ObjectMeta: meta(have)}
	if want.Spec.IPs, _ = d.addresses(service); !d.wanted && service == nil && !(d.releases() && wroteIPs(have.ManagedFields)) {
		want.Spec.IPs = have.Spec.IPs
	}
	want.Spec.IPs = prune(d.have.API.Imports, want).Spec.IPs
	if service != nil {
		want.Annotations = map[string]string{DerivedAnnotation: service.Name}
	}
	if slices.Equal(want.Spec.IPs, have.Spec.IPs) && have.Annotations[DerivedAnnotation] == want.Annotations[DerivedAnnotation] {
		return
	}
	d.settling = true
	d.do(written.Op{Verb: written.Apply, Kind: written.ServiceImport, Object: want})
}

// releases reports whether ips that strait wrote into a user's import, which gets no others now, go.
// The derived Service of an import of the MCS API stays, with its address. That of an import of another
// group goes when no cluster exports any more.
func (d *differ) releases() bool { return d.barred() || d.group != "" && d.view.complete() }

// sameImport reports whether have already has everything that want has. Labels and annotations that others
// added are theirs. Only the keys that strait owns are compared, so one that the exports no longer
// ask for is found.
func sameImport(have, want *mcsv1beta1.ServiceImport) bool {
	return maps.Equal(ours(have.ManagedFields, "f:labels", have.Labels), want.Labels) &&
		maps.Equal(ours(have.ManagedFields, "f:annotations", have.Annotations), want.Annotations) &&
		equality.Semantic.DeepEqual(have.Spec, want.Spec)
}
