package mcs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/problem"
)

// derivedService updates the derived Service and returns the one in force as it should be, or nil.
// If the Service is to have another name, the old one stays until the new one exists and the import
// has its addresses.
func (d *differ) derivedService() *corev1.Service {
	name := d.serviceName()
	have := d.service(name)
	if have == nil && d.inForce() != nil && d.wantsService(true) {
		d.createService(name)
		name, have = d.inForce().Name, d.inForce()
	}
	if !d.wantsService(have != nil) {
		for _, s := range d.have.Services {
			d.deleteService(s)
		}
		return nil
	}
	if have == nil {
		d.createService(name)
		return nil // no slices yet: a Service that is not strait's may have the name
	}
	want := d.wantService(name, have)
	d.lowered(want)
	switch {
	case have.DeletionTimestamp != nil:
		d.settling = true // wait: the next Service needs its name
	case !sameService(have, want):
		want.UID = have.UID
		o := written.Op{Verb: written.Apply, Kind: written.Service, Object: want, Force: true}
		if d.have.Trouble.Refused != "" {
			d.retries = append(d.retries, o)
			break
		}
		d.settling = true
		d.do(o)
	default: // the others go when the import has this one's addresses
		for _, s := range d.have.Services {
			if s.Name != name {
				d.deleteService(s)
			}
		}
	}
	return want
}

// lowered reports a traffic distribution that this cluster cannot have.
func (d *differ) lowered(s *corev1.Service) {
	refused := d.have.Trouble.RefusedDistribution
	asked := d.imp.TrafficDistribution
	if !OurImport(d.have.Import) {
		asked = deref(d.asked.TrafficDistribution)
	}
	got := deref(s.Spec.TrafficDistribution)
	if refused == "" || asked == got {
		return
	}
	d.problem(problem.Object("Service", d.name.Namespace, s.Name).Problem(clustermesh.Problem{
		Code: problem.WriteRefused, Field: "spec.trafficDistribution", Warning: true,
		Message: fmt.Sprintf("this cluster's API server does not know %s: it is %s here", asked, cmp.Or(got, "left out")),
		Try:     "nothing to do: strait's own load balancing follows the export; kube-proxy here does after an upgrade of Kubernetes",
	}))
}

// service returns the existing derived Service of a name, or nil.
func (d *differ) service(name string) *corev1.Service {
	for _, s := range d.have.Services {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// inForce returns the derived Service that the import names, or nil.
func (d *differ) inForce() *corev1.Service {
	if s := d.service(d.have.Import.Annotations[DerivedAnnotation]); s != nil && s.DeletionTimestamp == nil {
		return s
	}
	return nil
}

// serviceName returns the name that the derived Service should have. The import's own name is left
// to a Service of this cluster; one is to be expected if there is a ServiceExport of that name.
func (d *differ) serviceName() string {
	names := d.view.Config.derivedNames(d.name.Name)
	if _, exports := d.view.export(d.name); len(names) > 1 && (exports || d.have.Trouble.OwnNameTaken) {
		return names[1]
	}
	return names[0]
}

// createService creates a derived Service. If the creation is known to fail, the other writes go
// on.
func (d *differ) createService(name string) {
	d.foreign(name)
	o := written.Op{Verb: written.Create, Kind: written.Service, Object: d.wantService(name, nil)}
	if t := d.have.Trouble; t.NameTaken || t.FamilyNotSupported || t.Refused != "" {
		d.retries = append(d.retries, o)
		return
	}
	d.settling = true
	d.do(o)
}

// wantsService reports whether there should be a derived Service. Once created it lives as long as
// the import, because its ClusterIP is the import's address: the end of the exports alone does not
// take it from a user's import.
func (d *differ) wantsService(have bool) bool {
	if !d.view.Config.derived() || d.importType() != clustermesh.ClusterSetIP || d.barred() {
		return false
	}
	if !d.wanted {
		return have
	}
	return d.imp.Type == clustermesh.ClusterSetIP && len(d.servicePorts()) > 0
}

func (d *differ) wantService(name string, have *corev1.Service) *corev1.Service {
	out := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.name.Namespace, Name: name, OwnerReferences: owner(d.have.Import, d.have.API.Imports.Version),
			Labels: map[string]string{object.LabelManagedBy: object.ManagedBy, object.LabelServiceImport: d.name.Name},
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: d.servicePorts()},
	}
	s := &out.Spec
	if OurImport(d.have.Import) {
		s.SessionAffinity, s.SessionAffinityConfig = affinity(d.imp.AffinitySeconds)
		s.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicy(d.imp.InternalTrafficPolicy))
		s.TrafficDistribution = ptr(d.imp.TrafficDistribution)
	} else {
		i := d.asked
		s.SessionAffinity = cmp.Or(i.SessionAffinity, corev1.ServiceAffinityNone)
		if s.SessionAffinity == corev1.ServiceAffinityClientIP {
			s.SessionAffinityConfig = i.SessionAffinityConfig
		}
		s.InternalTrafficPolicy, s.TrafficDistribution = i.InternalTrafficPolicy, i.TrafficDistribution
	}
	s.TrafficDistribution = known(s.TrafficDistribution, d.have.Trouble.RefusedDistribution)
	if s.InternalTrafficPolicy == nil {
		// The API server's default.
		s.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyCluster)
	}
	d.setFamilies(out, have)
	return out
}

// known returns a traffic distribution that an API server knows which refused one: before
// Kubernetes 1.34 there is only PreferClose, which PreferSameZone is the new name of, and before
// 1.31 there is none.
func known(want *string, refused string) *string {
	switch {
	case want == nil || refused == "":
		return want
	case refused == corev1.ServiceTrafficDistributionPreferClose:
		return nil
	}
	return ptr(corev1.ServiceTrafficDistributionPreferClose)
}

// setFamilies requests the import's families. A Service keeps its addresses, so it can gain a
// family but never lose one. If the import has two families, the Service gets the cluster's own
// order of them, or only one if the cluster has no second.
func (d *differ) setFamilies(service, have *corev1.Service) {
	s := &service.Spec
	single, prefer := corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack
	if have == nil {
		if have = d.lost(service.Name); have != nil {
			s.ClusterIP, s.ClusterIPs, s.IPFamilies = have.Spec.ClusterIP, have.Spec.ClusterIPs, have.Spec.IPFamilies
		}
	}
	if have != nil {
		s.IPFamilyPolicy = have.Spec.IPFamilyPolicy
		for _, f := range d.imp.Families {
			if !slices.Contains(have.Spec.IPFamilies, corev1.IPFamily(f)) {
				s.IPFamilyPolicy = &prefer
			}
		}
		return
	}
	if len(d.imp.Families) > 1 {
		s.IPFamilyPolicy = &prefer
		return
	}
	s.IPFamilyPolicy = &single
	for _, f := range d.imp.Families {
		s.IPFamilies = append(s.IPFamilies, corev1.IPFamily(f))
	}
}

// addressTries bounds how often the API server is asked for the previous addresses. It releases the
// addresses of a deleted Service only after its watch has reported the deletion.
const addressTries = 3

// lost returns what the import remembers of a derived Service that was deleted behind strait's
// back. When created again, the Service gets the same addresses, which are the import's for life.
// The result is nil if there was no such Service, or if the addresses are not available.
func (d *differ) lost(name string) *corev1.Service {
	i := d.have.Import
	if i.Annotations[DerivedAnnotation] != name || len(i.Spec.IPs) == 0 || d.have.Trouble.AddressRefused >= addressTries {
		return nil
	}
	s := &corev1.Service{Spec: corev1.ServiceSpec{
		ClusterIP: i.Spec.IPs[0], ClusterIPs: i.Spec.IPs, IPFamilyPolicy: ptr(corev1.IPFamilyPolicySingleStack),
	}}
	for _, text := range i.Spec.IPs {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil
		}
		s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPFamily(clustermesh.FamilyOf(ip)))
	}
	if len(s.Spec.IPFamilies) > 1 {
		s.Spec.IPFamilyPolicy = ptr(corev1.IPFamilyPolicyPreferDualStack)
	}
	return s
}

// serviceFamilies returns the families that the API server gave the derived Service or, before it
// exists, those that it is asked for by name.
func (d *differ) serviceFamilies(want *corev1.Service) []corev1.IPFamily {
	for _, s := range d.have.Services {
		if s.Name == want.Name {
			return s.Spec.IPFamilies
		}
	}
	return want.Spec.IPFamilies
}

// servicePorts returns the derived Service's ports: those of the merged import or, for a user's
// import, those in its spec. A Service with several ports needs a name for each.
func (d *differ) servicePorts() []corev1.ServicePort {
	var out []corev1.ServicePort
	add := func(name string, proto corev1.Protocol, port int32, app *string) {
		out = append(out, corev1.ServicePort{Name: name, Protocol: cmp.Or(proto, corev1.ProtocolTCP), Port: port, AppProtocol: app})
	}
	if i := d.have.Import; i != nil && !OurImport(i) {
		for _, p := range d.asked.Ports {
			add(p.Name, p.Protocol, p.Port, p.AppProtocol)
		}
	} else {
		for _, p := range d.imp.Ports {
			add(p.Name, corev1.Protocol(p.Proto.String()), int32(p.Port), ptr(p.AppProtocol))
		}
	}
	if len(out) < 2 {
		return out
	}
	taken := map[string]bool{}
	for _, p := range out {
		taken[p.Name] = true
	}
	for i := range out {
		for n := 0; out[i].Name == ""; n++ {
			name := fmt.Sprintf("port-%d-%s", out[i].Port, strings.ToLower(string(out[i].Protocol)))
			if n > 0 {
				name = fmt.Sprintf("%s-%d", name, n)
			}
			if !taken[name] {
				out[i].Name, taken[name] = name, true
			}
		}
	}
	return out
}

// clusterIPs returns the addresses that the API server gave the derived Service.
func (d *differ) clusterIPs(want *corev1.Service) (out []netip.Addr) {
	for _, s := range d.have.Services {
		if want == nil || s.Name != want.Name || s.DeletionTimestamp != nil {
			continue
		}
		for _, text := range s.Spec.ClusterIPs {
			if ip, err := netip.ParseAddr(text); err == nil { // "None" is not an address
				out = append(out, ip)
			}
		}
	}
	return out
}

// foreign reports a Problem if a Service that is not strait's has the name.
func (d *differ) foreign(name string) {
	if !d.have.Trouble.NameTaken {
		return
	}
	p := d.name.Ref("ServiceImport").Problem(clustermesh.Problem{
		Code:    problem.ServiceNameInUse,
		Message: fmt.Sprintf("Service %s/%s exists and is not strait's: the import gets no ClusterSetIP", d.name.Namespace, name),
		Try:     "rename or delete that Service",
	})
	if s := d.inForce(); s != nil {
		p.Warning, p.Message = true, fmt.Sprintf("Service %s/%s exists and is not strait's: the import keeps Service %s", d.name.Namespace, name, s.Name)
	}
	d.problem(p)
}

// sameService compares what strait writes. It ignores what the API server fills in and what others
// add.
func sameService(have, want *corev1.Service) bool {
	for k, v := range want.Labels {
		if have.Labels[k] != v {
			return false
		}
	}
	ports := slices.Clone(have.Spec.Ports)
	for i := range ports {
		ports[i] = corev1.ServicePort{Name: ports[i].Name, Protocol: ports[i].Protocol, Port: ports[i].Port, AppProtocol: ports[i].AppProtocol}
	}
	h, w := have.Spec, want.Spec
	return ownsAll(have.OwnerReferences, want.OwnerReferences) &&
		samePorts(ports, w.Ports) &&
		h.SessionAffinity == w.SessionAffinity &&
		(w.SessionAffinityConfig == nil || equality.Semantic.DeepEqual(h.SessionAffinityConfig, w.SessionAffinityConfig)) &&
		equality.Semantic.DeepEqual(h.InternalTrafficPolicy, w.InternalTrafficPolicy) &&
		equality.Semantic.DeepEqual(h.TrafficDistribution, w.TrafficDistribution) &&
		equality.Semantic.DeepEqual(h.IPFamilyPolicy, w.IPFamilyPolicy)
}

// samePorts compares ports in any order: an apply keeps the order of existing ports.
func samePorts(a, b []corev1.ServicePort) bool {
	sorted := func(in []corev1.ServicePort) []corev1.ServicePort {
		in = slices.Clone(in)
		slices.SortFunc(in, func(a, b corev1.ServicePort) int {
			return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
		})
		return in
	}
	return equality.Semantic.DeepEqual(sorted(a), sorted(b))
}
