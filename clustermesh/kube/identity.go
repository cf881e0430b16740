package kube

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"strait.io/strait/clustermesh/object"
)

// Identity is the identity of the cluster and of this node by the API server.
type Identity = object.Identity

// Pods is what strait needs to know about this node's pods.
type Pods = object.Pods

// identity reads the cluster's identity. An API server that does not serve ClusterProperties, or
// does not allow reading them, has answered too: there is no property to wait for.
func (s *Source) identity(objs object.Objects) Identity {
	out := object.ReadIdentity(objs, s.cfg.Node)
	st := s.watches[object.PropertyResource].state()
	out.Read = out.Read || !st.absent.IsZero() || apierrors.IsForbidden(st.err)
	return out
}
