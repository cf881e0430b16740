// Package gke decides what the leader of a cluster makes of MultiClusterServices and
// MultiClusterIngresses of networking.gke.io: headless Services, Ingresses, and the status of both
// kinds.
//
// Inputs are a View of the cluster and what the API server has; outputs are ordered writes and
// statuses. Pure. It must not know how objects are read or written.
package gke

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

// View is what the leader of a cluster knows.
type View struct {
	Cluster clustermesh.ClusterName
	object.GKE
	// Backend returns the name of the Service that is derived from an import, behind which the pods
	// of all clusters are. Own is true if the cluster has a Service of the import's name. The
	// result is empty if the cluster makes no such Services.
	Backend func(imported string, own bool) string
	// Namespaces are the cluster's own. An object of another cluster makes nothing in one that is
	// missing. Nil means that every namespace counts as existing.
	Namespaces map[string]bool
	// Unknown are clusters whose configuration is accepted, and of which nothing is known: what was
	// made for their objects stays.
	Unknown []clustermesh.ClusterName
	// Elsewhere are the other clusters that export the headless Service of an object of this one, by
	// the Policy of their exports.
	Elsewhere map[string][]string
}

// Have is what the API server has of what was made for objects of networking.gke.io: nothing else
// is touched.
type Have struct {
	Services  []*corev1.Service
	Ingresses []*networkingv1.Ingress
}

// HaveOf sorts objects by their kinds.
func HaveOf(there []metav1.Object) (h Have) {
	for _, o := range there {
		switch o := o.(type) {
		case *corev1.Service:
			h.Services = append(h.Services, o)
		case *networkingv1.Ingress:
			h.Ingresses = append(h.Ingresses, o)
		}
	}
	return h
}

// Diff returns the writes that bring a cluster to what it should have. Services come before the
// Ingresses that lead to their pods, and go after them.
func Diff(v View, h Have) (ops []written.Op) {
	services, ingresses := v.services(), v.ingresses()
	var deletions []written.Op
	for _, have := range h.Ingresses {
		want := ingresses[nameOf(have)]
		if delete(ingresses, nameOf(have)); want == nil && v.held(have) {
			continue
		} else if want == nil {
			deletions = append(deletions, written.Op{Verb: written.Delete, Kind: written.Ingress, Object: &networkingv1.Ingress{ObjectMeta: identity(have)}})
		} else if next := ingressFrom(have, want); !equality.Semantic.DeepEqual(have, next) {
			ops = append(ops, written.Op{Verb: written.Update, Kind: written.Ingress, Object: next})
		}
	}
	var early []written.Op
	for _, have := range h.Services {
		want := services[nameOf(have)]
		if delete(services, nameOf(have)); want == nil && v.held(have) {
			continue
		} else if want == nil {
			deletions = append(deletions, written.Op{Verb: written.Delete, Kind: written.Service, Object: &corev1.Service{ObjectMeta: identity(have)}})
		} else if next := serviceFrom(have, want); !equality.Semantic.DeepEqual(have, next) {
			early = append(early, written.Op{Verb: written.Update, Kind: written.Service, Object: next})
		}
	}
	for _, s := range v.Services { // in a stable order
		if want := services[clustermesh.ServiceName{Namespace: s.Namespace, Name: s.Derived()}]; want != nil {
			early = append(early, written.Op{Verb: written.Create, Kind: written.Service, Object: want})
		}
	}
	for _, i := range v.Ingresses {
		if want := ingresses[clustermesh.ServiceName{Namespace: i.Namespace, Name: i.Name}]; want != nil {
			ops = append(ops, written.Op{Verb: written.Create, Kind: written.Ingress, Object: want})
		}
	}
	return append(append(early, ops...), deletions...)
}

// held reports whether something stays although nothing asks for it, because nothing is known of the
// cluster whose object asked for it.
func (v View) held(o metav1.Object) bool {
	from := o.GetLabels()[object.LabelConfigCluster]
	return from != "" && slices.Contains(v.Unknown, clustermesh.ClusterName(from))
}

func nameOf(o metav1.Object) clustermesh.ServiceName {
	return clustermesh.ServiceName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// identity is what deleting needs: no other object of that name.
func identity(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

// services returns the headless Services that the cluster should have.
func (v View) services() map[clustermesh.ServiceName]*corev1.Service {
	out := map[clustermesh.ServiceName]*corev1.Service{}
	for _, s := range v.Services {
		if len(s.Mistakes) > 0 || !s.Lists(v.Cluster) || !v.here(s.GKEObject) {
			continue
		}
		want := &corev1.Service{
			ObjectMeta: made(s.GKEObject, s.Derived(), object.LabelMultiService),
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Type: corev1.ServiceTypeClusterIP, Selector: s.Selector, Ports: s.Ports},
		}
		out[nameOf(want)] = want
	}
	return out
}

// ingresses returns the Ingresses that the cluster should have.
func (v View) ingresses() map[clustermesh.ServiceName]*networkingv1.Ingress {
	out := map[clustermesh.ServiceName]*networkingv1.Ingress{}
	for _, i := range v.Ingresses {
		if len(i.Mistakes) > 0 || v.noBackends() || !v.here(i.GKEObject) {
			continue
		}
		want := &networkingv1.Ingress{ObjectMeta: made(i.GKEObject, i.Name, object.LabelMultiIngress)}
		want.Spec = *i.Standard(v.GKE, func(s object.MultiService) string { return v.Backend(s.Derived(), s.Lists(v.Cluster)) })
		out[nameOf(want)] = want
	}
	return out
}

// here reports whether the cluster has an object's namespace.
func (v View) here(g object.GKEObject) bool {
	return g.From == "" || v.Namespaces == nil || v.Namespaces[g.Namespace]
}

// noBackends reports whether the cluster has no Services that an Ingress can lead to.
func (v View) noBackends() bool { return v.Backend("any", false) == "" }

// made returns the metadata of what is made for an object. It goes with the object, if that is in this
// cluster: an owner that does not exist would have it deleted.
func made(g object.GKEObject, name, label string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: g.Namespace, Name: name,
		Labels: map[string]string{object.LabelManagedBy: object.ManagedBy, label: g.Name},
	}
	if g.From != "" {
		out.Labels[object.LabelConfigCluster] = string(g.From)
	} else {
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: g.APIVersion, Kind: g.Kind, Name: g.Name, UID: types.UID(g.UID)}}
	}
	return out
}

// serviceFrom returns a Service as it should be, with what the API server fills in and others add.
func serviceFrom(have, want *corev1.Service) *corev1.Service {
	next := have.DeepCopy()
	adopt(&next.ObjectMeta, want.ObjectMeta)
	next.Spec.Selector, next.Spec.Ports = want.Spec.Selector, want.Spec.Ports
	return next
}

func ingressFrom(have, want *networkingv1.Ingress) *networkingv1.Ingress {
	next := have.DeepCopy()
	adopt(&next.ObjectMeta, want.ObjectMeta)
	class := next.Spec.IngressClassName
	if next.Spec = want.Spec; next.Spec.IngressClassName == nil {
		next.Spec.IngressClassName = class // the cluster's default
	}
	return next
}

// adopt writes strait's own metadata into that of an object.
func adopt(have *metav1.ObjectMeta, want metav1.ObjectMeta) {
	labels := maps.Clone(have.Labels)
	delete(labels, object.LabelConfigCluster)
	maps.Copy(labels, want.Labels)
	have.Labels, have.OwnerReferences = labels, want.OwnerReferences
}

// Ours reports whether an object was made for one of networking.gke.io.
func Ours(labels map[string]string) bool {
	_, service := labels[object.LabelMultiService]
	_, ingress := labels[object.LabelMultiIngress]
	return labels[object.LabelManagedBy] == object.ManagedBy && (service || ingress)
}

// Taken says that there is another object of a name.
func Taken(o written.Op) string {
	return fmt.Sprintf("%s is there and is not strait's: it stays as it is", o.Target())
}
