package cluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var clusterRoleBindings = resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")

// OnlyHere returns an error if strait is installed in another namespace of the cluster. Its objects
// outside of namespaces exist only once, and a second install would take them over: the first one's
// service account could no longer read anything, without any message.
func (c *Cluster) OnlyHere(ctx context.Context) error {
	binding, err := get[rbacv1.ClusterRoleBinding](ctx, c, clusterRoleBindings, "", Daemon)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("context %s: read ClusterRoleBinding %s: %w", c.Context, Daemon, err)
	}
	if ns := elsewhere(binding, c.Namespace); ns != "" {
		return fmt.Errorf("context %s: strait is in the namespace %s, and can be in only one (ClusterRoleBinding %s); use -n %s, or first: strait uninstall --context %s -n %s",
			c.Context, ns, Daemon, ns, c.Context, ns)
	}
	return nil
}

// elsewhere returns the namespace of the bound service account; empty if that is this namespace.
func elsewhere(binding *rbacv1.ClusterRoleBinding, namespace string) (other string) {
	for _, s := range binding.Subjects {
		switch {
		case s.Kind != rbacv1.ServiceAccountKind || s.Name != Daemon:
		case s.Namespace == namespace:
			return ""
		default:
			other = s.Namespace
		}
	}
	return other
}
