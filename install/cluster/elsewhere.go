package cluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var clusterRoleBindings = resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")

// OnlyHere returns an error where strait is in another namespace of the cluster. What it has outside of namespaces is
// there once, and would be taken from the other: its account could read nothing any more, and nobody would be told.
func (c *Cluster) OnlyHere(ctx context.Context) error {
	binding, err := get[rbacv1.ClusterRoleBinding](ctx, c, clusterRoleBindings, "", Daemon)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("context %s: read ClusterRoleBinding %s: %w", c.Context, Daemon, err)
	}
	if ns := elsewhere(binding, c.Namespace); ns != "" {
		return fmt.Errorf("context %s: strait is in the namespace %s, and can be in one only (ClusterRoleBinding %s): use -n %s; or first: strait uninstall --context %s -n %s",
			c.Context, ns, Daemon, ns, c.Context, ns)
	}
	return nil
}

// elsewhere is the namespace whose daemon has the rights, if it is not this one.
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
