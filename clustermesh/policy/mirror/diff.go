package mirror

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verb is what an Op does.
type Verb string

// The verbs.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Op is one write. Exactly one of the objects is set. An object to update is the one that is there, with
// what must change; one to delete has its UID.
type Op struct {
	Verb      Verb
	Namespace string // a Namespace to create
	Service   *corev1.Service
	Slice     *discoveryv1.EndpointSlice
}

func (o Op) String() string {
	switch {
	case o.Service != nil:
		return fmt.Sprintf("%s Service %s/%s", o.Verb, o.Service.Namespace, o.Service.Name)
	case o.Slice != nil:
		return fmt.Sprintf("%s EndpointSlice %s/%s", o.Verb, o.Slice.Namespace, o.Slice.Name)
	}
	return fmt.Sprintf("%s Namespace %s", o.Verb, o.Namespace)
}

// Diff returns the writes that bring a cluster from what it has to a plan, in their order: endpoints
// come before their Service, and go after it. Unknown are the clusters that should have been asked and
// did not answer. What came from them stays as it is.
func Diff(set string, p Plan, have Cluster, unknown func(cluster string) bool) (ops []Op) {
	d := differ{unknown: unknown, policies: p.Policies, services: map[name]*corev1.Service{}, slices: map[name]*discoveryv1.EndpointSlice{}}
	for _, s := range have.Services {
		d.services[nameOf(s)] = s
	}
	for _, s := range have.Slices {
		d.slices[nameOf(s)] = s
	}
	wanted, wantedSlices := map[name]bool{}, map[name]bool{}
	for _, ns := range p.Namespaces {
		d.do(Op{Verb: Create, Namespace: ns})
	}
	for _, m := range p.Mirrors {
		for _, s := range m.Slices {
			wantedSlices[nameOf(s)] = true
			d.slice(s)
		}
		wanted[nameOf(m.Service)] = true
		d.service(m.Service)
	}
	for _, s := range have.Services {
		if Ours(set, s.Labels) && !d.waits(s) && !wanted[nameOf(s)] {
			d.do(Op{Verb: Delete, Service: &corev1.Service{ObjectMeta: identity(&s.ObjectMeta)}})
		}
	}
	for _, s := range have.Slices {
		if Ours(set, s.Labels) && !d.holds(s.Labels, s.Labels[LabelSource]) && !wantedSlices[nameOf(s)] {
			d.do(Op{Verb: Delete, Slice: &discoveryv1.EndpointSlice{ObjectMeta: identity(&s.ObjectMeta)}})
		}
	}
	return d.ops
}

type differ struct {
	services map[name]*corev1.Service
	slices   map[name]*discoveryv1.EndpointSlice
	unknown  func(cluster string) bool
	policies map[string]bool
	ops      []Op
}

func (d *differ) do(o Op) { d.ops = append(d.ops, o) }

// identity is what deleting needs: nobody else's object of that name.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}

// holds reports whether what came from a cluster, by a policy that is in force, stays as it is.
func (d *differ) holds(labels map[string]string, cluster string) bool {
	return d.policies[labels[LabelPolicy]] && d.unknown(cluster)
}

// waits reports whether a source of a mirror is unknown.
func (d *differ) waits(s *corev1.Service) bool {
	for from := range strings.SplitSeq(s.Annotations[AnnotationFrom], ",") {
		cluster, _, _ := strings.Cut(from, "/")
		if d.holds(s.Labels, cluster) {
			return true
		}
	}
	return false
}

func (d *differ) service(want *corev1.Service) {
	have := d.services[nameOf(want)]
	if have == nil {
		d.do(Op{Verb: Create, Service: want})
		return
	}
	if d.waits(have) {
		return
	}
	if (have.Spec.ClusterIP == corev1.ClusterIPNone) != (want.Spec.ClusterIP == corev1.ClusterIPNone) {
		// That cannot be changed.
		d.do(Op{Verb: Delete, Service: &corev1.Service{ObjectMeta: identity(&have.ObjectMeta)}})
		d.do(Op{Verb: Create, Service: want})
		return
	}
	next := have.DeepCopy()
	next.Labels, next.Annotations = want.Labels, want.Annotations
	next.Spec.Type, next.Spec.Selector = want.Spec.Type, nil
	next.Spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
	if want.Spec.SessionAffinity != "" {
		next.Spec.SessionAffinity, next.Spec.SessionAffinityConfig = want.Spec.SessionAffinity, want.Spec.SessionAffinityConfig
	}
	next.Spec.Ports = slices.Clone(want.Spec.Ports)
	for i := range next.Spec.Ports {
		port := &next.Spec.Ports[i]
		// The API server chose the node port, if there is one.
		if at := slices.IndexFunc(have.Spec.Ports, func(q corev1.ServicePort) bool { return q.Port == port.Port && q.Protocol == port.Protocol }); at >= 0 {
			port.NodePort = have.Spec.Ports[at].NodePort
		}
	}
	if !equality.Semantic.DeepEqual(have, next) {
		d.do(Op{Verb: Update, Service: next})
	}
}

func (d *differ) slice(want *discoveryv1.EndpointSlice) {
	have := d.slices[nameOf(want)]
	if have == nil {
		d.do(Op{Verb: Create, Slice: want})
		return
	}
	next := have.DeepCopy()
	next.Labels, next.Ports, next.Endpoints = want.Labels, want.Ports, want.Endpoints
	if !equality.Semantic.DeepEqual(have, next) {
		d.do(Op{Verb: Update, Slice: next})
	}
}
