package kube

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"strait.io/strait/clustermesh/object"
)

// Identity is what the API server says of who the cluster and this node are.
type Identity = object.Identity

// Pods are what strait needs to know of this node's pods.
type Pods = object.Pods

// identity reads who the cluster is. An API server that does not serve ClusterProperties, or
// forbids to read them, has answered as well: there is no property to wait for.
func (s *Source) identity(objs object.Objects) Identity {
	out := object.ReadIdentity(objs, s.cfg.Node)
	st := s.watches[object.PropertyResource].state()
	out.Read = out.Read || !st.absent.IsZero() || apierrors.IsForbidden(st.err)
	return out
}
