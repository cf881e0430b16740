package kube

import (
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/object"
)

// keeping makes a kind's keep of a function for its objects. What has no such type is already what is kept.
func keeping[T any](f func(T) named) func(any) named {
	return func(o any) named {
		if typed, ok := o.(T); ok {
			return f(typed)
		}
		kept, _ := o.(named)
		return kept
	}
}

func keepService(s *corev1.Service) named { return object.ServiceFrom(s) }

func keepExport(e *mcsv1beta1.ServiceExport) named { return object.ExportFrom(e) }

func keepImport(i *mcsv1beta1.ServiceImport) named { return object.ImportFrom(i) }

// keepSlice keeps the endpoints of one node and those that name none: other nodes announce their own.
func keepSlice(node string) func(*discoveryv1.EndpointSlice) named {
	return func(s *discoveryv1.EndpointSlice) named {
		s.Endpoints = slices.DeleteFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.NodeName != nil && *e.NodeName != "" && *e.NodeName != node
		})
		if len(s.Endpoints) == 0 {
			s.Ports = nil
		}
		if kept := object.SliceFrom(s); !kept.Mute() {
			return kept
		}
		return nil
	}
}

// Nodes, Pods and what is known by metadata alone are few: they are trimmed in place. Trimming twice is trimming once.

func keepNode(n *corev1.Node) named {
	trimMeta(&n.ObjectMeta)
	n.Spec = corev1.NodeSpec{PodCIDR: n.Spec.PodCIDR, PodCIDRs: n.Spec.PodCIDRs}
	n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
	return n
}

func keepPod(p *corev1.Pod) named {
	trimMeta(&p.ObjectMeta)
	p.Spec = corev1.PodSpec{HostNetwork: p.Spec.HostNetwork}
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, PodIPs: p.Status.PodIPs}
	return p
}

func keepMetadata(m *metav1.PartialObjectMetadata) named {
	trimMeta(&m.ObjectMeta)
	return m
}

func keepUnstructured(u *unstructured.Unstructured) named {
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	return u
}

// keptLabels are those of Nodes that somebody reads.
var keptLabels = map[string]bool{
	corev1.LabelTopologyRegion: true, corev1.LabelTopologyZone: true,
	corev1.LabelFailureDomainBetaRegion: true, corev1.LabelFailureDomainBetaZone: true,
}

// ownAnnotations begin with it; no others of Nodes and Pods are read.
const ownAnnotations = "strait.io/"

func trimMeta(m *metav1.ObjectMeta) {
	*m = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, CreationTimestamp: m.CreationTimestamp,
		Labels:      only(m.Labels, func(k string) bool { return keptLabels[k] }),
		Annotations: only(m.Annotations, func(k string) bool { return strings.HasPrefix(k, ownAnnotations) }),
	}
}

// only returns the entries that are kept, in strings that equal ones share.
func only(in map[string]string, keep func(string) bool) (out map[string]string) {
	for k, v := range in {
		if !keep(k) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[unique.Make(k).Value()] = unique.Make(v).Value()
	}
	return out
}
