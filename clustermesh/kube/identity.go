package kube

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strait.io/strait/clustermesh/object"
)

// clusterID is the ClusterProperty that holds the cluster's id (KEP-2149).
const clusterID = "cluster.clusterset.k8s.io"

// Identity is what the API server says of who the cluster and this node are.
type Identity struct {
	// Property is the value of the ClusterProperty that names the cluster, empty if there is none; Read is
	// whether that is known.
	Property string
	Read     bool
	// UID tells clusters apart whatever they call themselves: that of Namespace kube-system. Empty if unknown.
	UID string
	// Node is the address of this machine's Node object that others should use; invalid if unknown.
	Node netip.Addr
}

func (s *Source) identity(nodes []*corev1.Node) Identity {
	var out Identity
	for _, n := range list[*metav1.PartialObjectMetadata](s.watches[namespaces]) {
		if n.Name == metav1.NamespaceSystem {
			out.UID = string(n.UID)
		}
	}
	property := s.watches[clusterProperties]
	st := property.state()
	out.Read = st.synced || !st.absent.IsZero() || apierrors.IsForbidden(st.err)
	for _, p := range list[*unstructured.Unstructured](property) {
		if p.GetName() == clusterID {
			out.Property, _, _ = unstructured.NestedString(p.Object, "spec", "value")
		}
	}
	for _, n := range nodes {
		if n.Name == string(s.cfg.Node) {
			if read := object.Local(object.Objects{Nodes: []*corev1.Node{n}}).Nodes; len(read) > 0 && len(read[0].Addresses) > 0 {
				out.Node = read[0].Addresses[0]
			}
		}
	}
	return out
}
