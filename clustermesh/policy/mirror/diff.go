package mirror

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/written"
)

// Diff returns the writes that bring a cluster from what it has to a plan, in their order. Those for
// mirrors that are there come before new ones, of which there may be thousands.
// EndpointSlices are written and deleted after their Service: otherwise a user's Service of the same
// name would get their endpoints. So if a Service cannot be created, leave out the writes of its
// EndpointSlices. Unknown are the clusters that should have answered and did not. What came
// from them stays as it is.
func Diff(set string, p Plan, have Cluster, unknown func(cluster string) bool) (ops []written.Op) {
	d := differ{unknown: unknown, policies: p.Policies, services: map[name]*corev1.Service{}, slices: map[name]*discoveryv1.EndpointSlice{}}
	for _, s := range have.Services {
		d.services[nameOf(s)] = s
	}
	for _, s := range have.Slices {
		d.slices[nameOf(s)] = s
	}
	wanted, wantedSlices, stays := map[name]bool{}, map[name]bool{}, map[name]bool{}
	for _, ns := range p.Namespaces {
		d.do(written.Op{Verb: written.Create, Kind: written.Namespace, Object: namespace(ns)})
	}
	for _, m := range p.Mirrors {
		of := nameOf(m.Service)
		wanted[of], stays[of] = true, !d.service(m.Service)
		for _, s := range m.Slices {
			wantedSlices[nameOf(s)] = true
			d.slice(s)
		}
	}
	pending, early := d.pending(p.Mirrors), map[name]bool{}
	for _, s := range have.Services {
		if Ours(set, s.Labels) && !d.waits(s) && !wanted[nameOf(s)] {
			of := nameOf(s)
			early[of] = slices.ContainsFunc(sourcesOf(s), func(source string) bool { return pending[source] })
			d.do(written.Op{Verb: written.Delete, Kind: written.Service, Object: &corev1.Service{ObjectMeta: identity(&s.ObjectMeta)}, Early: early[of]})
		}
	}
	for _, s := range have.Slices {
		if Ours(set, s.Labels) && !d.holds(s.Labels, s.Labels[LabelSource]) && !wantedSlices[nameOf(s)] {
			of := name{s.Namespace, s.Labels[discoveryv1.LabelServiceName]}
			d.do(written.Op{Verb: written.Delete, Kind: written.EndpointSlice, Object: &discoveryv1.EndpointSlice{ObjectMeta: identity(&s.ObjectMeta)}, Early: early[of]})
		}
	}
	slices.SortStableFunc(d.ops, func(a, b written.Op) int { return cmp.Compare(rank(a, stays), rank(b, stays)) })
	return d.ops
}

// rank is 0 for a write of a Service that stays, or of its EndpointSlices, and 1 for others.
func rank(o written.Op, stays map[name]bool) int {
	switch {
	case o.Service() != nil && stays[nameOf(o.Service())],
		o.Slice() != nil && stays[name{o.Slice().Namespace, o.Slice().Labels[discoveryv1.LabelServiceName]}]:
		return 0
	}
	return 1
}

// pending returns the sources whose mirror is not there yet, or has no endpoint that is ready while it
// should have one.
func (d *differ) pending(mirrors []Mirrored) map[string]bool {
	serves := map[name]bool{}
	for _, s := range d.slices {
		if anyReady(s) {
			serves[name{s.Namespace, s.Labels[discoveryv1.LabelServiceName]}] = true
		}
	}
	out := map[string]bool{}
	for _, m := range mirrors {
		if of := nameOf(m.Service); d.services[of] == nil || !serves[of] && slices.ContainsFunc(m.Slices, anyReady) {
			for _, source := range sourcesOf(m.Service) {
				out[source] = true
			}
		}
	}
	return out
}

// anyReady reports whether an endpoint of a slice is ready. No word counts as yes (discovery/v1).
func anyReady(s *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
}

// sourcesOf returns the sources of a mirror, as CLUSTER/NAMESPACE/NAME.
func sourcesOf(s *corev1.Service) []string { return strings.Split(s.Annotations[AnnotationFrom], ",") }

type differ struct {
	services map[name]*corev1.Service
	slices   map[name]*discoveryv1.EndpointSlice
	unknown  func(cluster string) bool
	policies map[string]bool
	ops      []written.Op
}

func (d *differ) do(o written.Op) { d.ops = append(d.ops, o) }

// identity is what a delete needs, so that it never deletes another object of that name.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}

// holds reports whether what came from a cluster, by a policy that is in force, stays as it is.
func (d *differ) holds(labels map[string]string, cluster string) bool {
	return d.policies[labels[LabelPolicy]] && d.unknown(cluster)
}

// waits reports whether a source of a mirror is unknown.
func (d *differ) waits(s *corev1.Service) bool {
	for _, from := range sourcesOf(s) {
		cluster, _, _ := strings.Cut(from, "/")
		if d.holds(s.Labels, cluster) {
			return true
		}
	}
	return false
}

// service writes a Service that differs, and reports whether it is created.
func (d *differ) service(want *corev1.Service) (created bool) {
	have := d.services[nameOf(want)]
	if have == nil {
		d.do(written.Op{Verb: written.Create, Kind: written.Service, Object: want})
		return true
	}
	if d.waits(have) {
		return false
	}
	if (have.Spec.ClusterIP == corev1.ClusterIPNone) != (want.Spec.ClusterIP == corev1.ClusterIPNone) {
		// That cannot be changed.
		d.do(written.Op{Verb: written.Delete, Kind: written.Service, Object: &corev1.Service{ObjectMeta: identity(&have.ObjectMeta)}})
		d.do(written.Op{Verb: written.Create, Kind: written.Service, Object: want})
		return true
	}
	// A copy of what follows would cost more than all the rest, for thousands of mirrors that stay
	// as they are.
	same := *have
	next := &same
	next.Labels, next.Annotations = want.Labels, annotations(have, want)
	next.Spec.Type, next.Spec.Selector = want.Spec.Type, nil
	next.Spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
	next.Spec.SessionAffinity, next.Spec.SessionAffinityConfig = want.Spec.SessionAffinity, want.Spec.SessionAffinityConfig
	next.Spec.Ports = slices.Clone(want.Spec.Ports)
	for i := range next.Spec.Ports {
		port := &next.Spec.Ports[i]
		// The API server chose the node port, if there is one.
		at := slices.IndexFunc(have.Spec.Ports, func(q corev1.ServicePort) bool { return q.Port == port.Port && q.Protocol == port.Protocol })
		if at >= 0 && want.Spec.Type != corev1.ServiceTypeClusterIP {
			port.NodePort = have.Spec.Ports[at].NodePort
		}
	}
	if !equality.Semantic.DeepEqual(have.Labels, next.Labels) || !equality.Semantic.DeepEqual(have.Annotations, next.Annotations) ||
		!equality.Semantic.DeepEqual(have.Spec, next.Spec) {
		d.do(written.Op{Verb: written.Update, Kind: written.Service, Object: next.DeepCopy()})
	}
	return false
}

// annotations returns those of a mirror: what others wrote stays.
func annotations(have, want *corev1.Service) map[string]string {
	out := maps.Clone(have.Annotations)
	for k := range strings.SplitSeq(out[AnnotationCopied], ",") {
		delete(out, k)
	}
	delete(out, AnnotationCopied)
	if out == nil {
		return want.Annotations
	}
	maps.Copy(out, want.Annotations)
	return out
}

func (d *differ) slice(want *discoveryv1.EndpointSlice) {
	have := d.slices[nameOf(want)]
	if have == nil {
		d.do(written.Op{Verb: written.Create, Kind: written.EndpointSlice, Object: want})
		return
	}
	if equality.Semantic.DeepEqual(have.Labels, want.Labels) && equality.Semantic.DeepEqual(have.Ports, want.Ports) && equality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) {
		return
	}
	next := have.DeepCopy()
	next.Labels, next.Ports, next.Endpoints = want.Labels, want.Ports, want.Endpoints
	d.do(written.Op{Verb: written.Update, Kind: written.EndpointSlice, Object: next})
}
