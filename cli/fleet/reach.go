package fleet

import (
	"context"
	"fmt"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/install/cluster"
)

// Reach opens the way to the daemons of a cluster; it is a cli.App's.
func Reach(ctx context.Context, p cli.Place) (*client.Client, error) {
	c, err := cluster.Open(cluster.Options{Kubeconfig: p.Kubeconfig, Context: p.Context, Namespace: p.Namespace, Login: p.Login})
	if err != nil && p.Context == "" && p.Kubeconfig == "" {
		return nil, fmt.Errorf("%w: %v", cli.ErrNoContext, err)
	}
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	return c.Daemons(ctx)
}

// ContextNames returns the names of the contexts of a kubeconfig, sorted; it is a cli.App's. A file
// that cannot be read has none.
func ContextNames(kubeconfig string) []string { return cluster.ContextNames(kubeconfig) }
