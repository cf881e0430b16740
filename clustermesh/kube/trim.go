package kube

import (
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/object"
)

// Labels and annotations that somebody reads; all others are dropped.
var (
	keptLabels = map[string]bool{
		corev1.LabelTopologyRegion: true, corev1.LabelTopologyZone: true,
		corev1.LabelFailureDomainBetaRegion: true, corev1.LabelFailureDomainBetaZone: true,
		discoveryv1.LabelServiceName: true, discoveryv1.LabelManagedBy: true, mcsv1beta1.LabelServiceName: true,
		object.LabelManagedBy: true, object.LabelServiceImport: true,
	}
	keptAnnotations = []string{"strait.io/", "service.strait.io/", "service.cilium.io/", "io.cilium/"}
)

func kept(annotation string) bool {
	for _, p := range keptAnnotations {
		if strings.HasPrefix(annotation, p) {
			return true
		}
	}
	return false
}

// intern makes one string of all equal ones: objects repeat few names many times.
func intern[S ~string](s *S) { *s = unique.Make(*s).Value() }

func trimMeta(m *metav1.ObjectMeta) {
	out := metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, CreationTimestamp: m.CreationTimestamp}
	intern(&out.Name)
	intern(&out.Namespace)
	out.Labels = only(m.Labels, func(k string) bool { return keptLabels[k] })
	out.Annotations = only(m.Annotations, kept)
	*m = out
}

func only(in map[string]string, keep func(string) bool) (out map[string]string) {
	for k, v := range in {
		if !keep(k) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		intern(&k)
		intern(&v)
		out[k] = v
	}
	return out
}

func trimNode(o any) {
	n := o.(*corev1.Node)
	trimMeta(&n.ObjectMeta)
	n.Spec = corev1.NodeSpec{PodCIDR: n.Spec.PodCIDR, PodCIDRs: n.Spec.PodCIDRs}
	n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
}

func trimService(o any) {
	s := o.(*corev1.Service)
	trimMeta(&s.ObjectMeta)
	spec := s.Spec
	s.Status = corev1.ServiceStatus{}
	s.Spec = corev1.ServiceSpec{
		Type: spec.Type, ClusterIP: spec.ClusterIP, ClusterIPs: spec.ClusterIPs, Ports: spec.Ports,
		SessionAffinity: spec.SessionAffinity, SessionAffinityConfig: spec.SessionAffinityConfig,
		IPFamilies: spec.IPFamilies, IPFamilyPolicy: spec.IPFamilyPolicy,
		InternalTrafficPolicy: spec.InternalTrafficPolicy, TrafficDistribution: spec.TrafficDistribution,
	}
	intern(&s.Spec.Type)
	intern(&s.Spec.SessionAffinity)
	if len(spec.ClusterIPs) == 1 {
		s.Spec.ClusterIPs[0] = spec.ClusterIP
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		*p = corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port}
		intern(&p.Name)
		intern(&p.Protocol)
	}
	for i := range s.Spec.IPFamilies {
		intern(&s.Spec.IPFamilies[i])
	}
}

// trimSlice keeps the endpoints of one node and those that name none: other nodes announce their own.
func trimSlice(node string) func(any) {
	return func(o any) {
		s := o.(*discoveryv1.EndpointSlice)
		trimMeta(&s.ObjectMeta)
		intern(&s.AddressType)
		var mine []discoveryv1.Endpoint
		for _, e := range s.Endpoints {
			if e.NodeName == nil || *e.NodeName == "" || *e.NodeName == node {
				trimEndpoint(&e)
				mine = append(mine, e)
			}
		}
		s.Endpoints = mine
		if mine == nil {
			s.Ports = nil
		}
		for i := range s.Ports {
			if p := &s.Ports[i]; p.Name != nil {
				intern(p.Name)
			}
		}
	}
}

// elsewhere reports a trimmed slice whose endpoints are all other nodes', and with which nothing is wrong.
func elsewhere(o any) bool {
	s := o.(*discoveryv1.EndpointSlice)
	return len(s.Endpoints) == 0 && s.Labels[discoveryv1.LabelServiceName] != "" &&
		(s.AddressType == discoveryv1.AddressTypeIPv4 || s.AddressType == discoveryv1.AddressTypeIPv6)
}

func trimEndpoint(e *discoveryv1.Endpoint) {
	e.DeprecatedTopology, e.Hints = nil, nil
	for _, s := range []*string{e.NodeName, e.Zone} {
		if s != nil {
			intern(s)
		}
	}
	if e.TargetRef != nil {
		e.TargetRef = &corev1.ObjectReference{Kind: e.TargetRef.Kind, Name: e.TargetRef.Name}
		intern(&e.TargetRef.Kind)
	}
}

func trimExport(o any) {
	x := o.(*mcsv1beta1.ServiceExport)
	trimMeta(&x.ObjectMeta)
	x.Status = mcsv1beta1.ServiceExportStatus{}
}

func trimImport(o any) {
	i := o.(*mcsv1beta1.ServiceImport)
	trimMeta(&i.ObjectMeta)
	i.Spec, i.Status = mcsv1beta1.ServiceImportSpec{}, mcsv1beta1.ServiceImportStatus{}
}

func trimPod(o any) {
	p := o.(*corev1.Pod)
	trimMeta(&p.ObjectMeta)
	p.Spec = corev1.PodSpec{HostNetwork: p.Spec.HostNetwork}
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, PodIPs: p.Status.PodIPs}
}

func trimMetadata(o any) { trimMeta(&o.(*metav1.PartialObjectMetadata).ObjectMeta) }

func trimUnstructured(o any) {
	unstructured.RemoveNestedField(o.(*unstructured.Unstructured).Object, "metadata", "managedFields")
}
