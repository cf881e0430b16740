package object

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strait.io/strait/clustermesh"
)

// clusterID is the ClusterProperty that holds the cluster's id (KEP-2149).
const clusterID = "cluster.clusterset.k8s.io"

// Identity is what a cluster's objects have of the identity of the cluster and of one of its
// nodes.
type Identity struct {
	// Property is the value of the ClusterProperty that names the cluster, empty if there is none;
	// Read is true if that is known.
	Property string
	Read     bool
	// UID distinguishes clusters, whatever names they have: it is the UID of Namespace kube-system.
	// Empty if unknown.
	UID string
	// Node is the address of the node that others should use; invalid if unknown.
	Node netip.Addr
}

// ReadIdentity returns the identity of the cluster, and of one of its nodes.
func ReadIdentity(objs Objects, node clustermesh.NodeName) Identity {
	out := Identity{Read: objs.All[PropertyResource]}
	for _, n := range objs.Namespaces {
		if n.Name == metav1.NamespaceSystem {
			out.UID = n.uid
		}
	}
	for _, p := range objs.Properties {
		if p.Name == clusterID {
			out.Property = p.value
		}
	}
	for _, n := range objs.Nodes {
		if n.Name != string(node) {
			continue
		}
		if read := readNodes([]*Node{n}, Config{}, nil, &report{}).list; len(read) > 0 && len(read[0].Addresses) > 0 {
			out.Node = read[0].Addresses[0]
		}
	}
	return out
}

// Namespace holds what is read of a Namespace.
type Namespace struct {
	ID
	uid         string
	annotations map[string]string
}

func namespaceFrom(in metav1.Object) *Namespace {
	return &Namespace{ID: ID{Name: in.GetName()}, uid: string(in.GetUID()), annotations: in.GetAnnotations()}
}

func (n *Namespace) insert(o *Objects) { o.Namespaces = append(o.Namespaces, n) }

// Property holds what is read of a ClusterProperty.
type Property struct {
	ID
	value string
}

func propertyFrom(in *unstructured.Unstructured) *Property {
	value, _, _ := unstructured.NestedString(in.Object, "spec", "value")
	return &Property{ID: ID{Name: in.GetName()}, value: value}
}

func (p *Property) insert(o *Objects) { o.Properties = append(o.Properties, p) }
