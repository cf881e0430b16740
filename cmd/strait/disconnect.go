package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"strait.io/strait/install/bundle"
	"strait.io/strait/install/cluster"
)

func (a *app) disconnectCommand() *cobra.Command {
	var t target
	var contexts []string
	c := &cobra.Command{
		Use:   "disconnect CLUSTER",
		Short: "Look no longer for a cluster that is gone",
		Long: `Take the cluster of an id from what the clusters of the contexts know of each other, so that they no longer look for its
nodes. Name the contexts of all clusters that are left. First take strait from the one that goes, by strait uninstall: that
is what withdraws its Services. Of a cluster that was lost without it, what was last heard stays.`,
		Example: `  strait uninstall --context c3
  strait clusterset disconnect asia --context c1 --context c2`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.disconnect(cmd.Context(), t, contexts, args[0])
		},
	}
	c.Flags().StringArrayVar(&contexts, "context", []string{""}, "`name` of a kubeconfig's context; may be repeated (default: the current one)")
	t.flags(c)
	return c
}

func (a *app) disconnect(ctx context.Context, t target, contexts []string, id string) error {
	m, err := a.members(ctx, t, contexts)
	if err != nil {
		return err
	}
	rest, err := bundle.Disconnect(m.views, id)
	if err != nil {
		return fmt.Errorf("cannot disconnect: %w", err)
	}
	// It has the gossip key, so that it would only come back.
	for i, c := range m.clusters {
		answers, _ := c.Ask(ctx, m.views[i].Cluster.ID) // who does not answer hears nobody
		if cluster.Hears(answers, id) {
			return fmt.Errorf("cannot disconnect: context %s: cluster %s is still heard: take strait from it first: strait uninstall --context CONTEXT", c.Context, id)
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
		a.printer().line("%s: cluster %s: Secret %s is %s", c.Context, m.views[i].Cluster.ID, done.Name, done.Did)
	}
	a.printer().line("disconnected: %s; its nodes are not looked for any more, within two minutes", id)
	return nil
}
