package fleet

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/cluster"
)

func disconnectCommand(a *cli.App) *cobra.Command {
	var t target
	var contexts []string
	c := &cobra.Command{
		Use:   "disconnect CLUSTER",
		Short: "Stop looking for the nodes of a cluster that is gone",
		Long: `Remove the cluster with this id from what the clusters of the contexts know of each other, so that
they stop looking for its nodes. Name the contexts of all clusters that remain.

First run strait uninstall on the cluster that leaves: that withdraws its Services. If a cluster was
lost without it, the others keep what they last heard of it.`,
		Example: `  strait clusterset disconnect asia    # one cluster remains, the current context's
  strait clusterset disconnect asia --context c1 --context c2`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return disconnect(cmd.Context(), a, t, contexts, args[0])
		},
	}
	c.Flags().StringArrayVar(&contexts, "context", []string{""}, "`name` of a kubeconfig context; repeatable (default: the current one)")
	t.flags(c)
	return c
}

func disconnect(ctx context.Context, a *cli.App, t target, contexts []string, id string) error {
	m, err := openMembers(ctx, a, t, contexts)
	if err != nil {
		return err
	}
	if err := refuseListed(ctx, m.clusters...); err != nil {
		return err
	}
	rest, err := bundle.Disconnect(m.views, id)
	if err != nil {
		return fmt.Errorf("cannot disconnect: %w", err)
	}
	// A cluster that is still heard has the gossip key, and would come back.
	for i, c := range m.clusters {
		// A daemon that does not answer counts as hearing no one.
		answers, _ := c.Ask(ctx, m.views[i].Cluster.ID)
		if cluster.Hears(answers, id) {
			return fmt.Errorf("cannot disconnect: context %s: cluster %s is still heard; remove strait from it first: strait uninstall --context CONTEXT", c.Context, id)
		}
	}
	for i, c := range m.clusters {
		if rest[i] == nil {
			continue
		}
		done, err := c.WriteBundle(ctx, *rest[i], m.views[i].Cluster.ID)
		if err != nil {
			return err
		}
		a.Printer().Line("%s: cluster %s: Secret %s is %s", c.Context, m.views[i].Cluster.ID, done.Name, done.Did)
	}
	a.Printer().Line("disconnected: %s; the other clusters stop looking for its nodes within two minutes", id)
	return nil
}
