package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"strait.io/strait/install/cluster"
)

func (a *app) uninstallCommand() *cobra.Command {
	var t target
	var context string
	var force bool
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove strait from a Kubernetes cluster and its nodes",
		Long: `Remove strait from the cluster of a context: hooks, tunnel, routes and state of every node; what dns setup taught
CoreDNS; imports, derived Services and slices that strait wrote; its rights and its namespace. CRDs go if install made them and nobody has objects
of them. It says what stays, and why. Services of other clusters stop answering here.`,
		Example: `  strait uninstall --context c1
  strait uninstall --context c1 --force    # although a node does not answer`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.uninstall(cmd.Context(), t, context, force)
		},
	}
	c.Flags().StringVar(&context, "context", "", "`name` of the kubeconfig's context (default: the current one)")
	t.flags(c)
	c.Flags().BoolVar(&force, "force", false, "go on although nodes could not be cleaned")
	return c
}

func (a *app) uninstall(ctx context.Context, t target, name string, force bool) error {
	c, err := t.open(name)
	if err != nil {
		return err
	}
	p := a.printer()
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	started, err := c.StartCleanup(ctx)
	if err != nil {
		return waitOver(err)
	}
	if started {
		pods, err := c.WaitDaemonSet(ctx, cluster.Cleanup, func(s string) { p.line("%s: %s", c.Context, s) })
		switch {
		case err == nil:
			p.line("%s: %d nodes are clean", c.Context, pods)
		case !force:
			return waitOver(fmt.Errorf("%w; run it again, or with --force to leave those nodes as they are", err))
		default:
			p.line("%s: not all nodes are clean: %v", c.Context, err)
		}
	}
	if err := a.forgetDNS(ctx, t, c); err != nil {
		return err
	}
	written, err := c.RemoveWritten(ctx)
	a.printChanges(written)
	if err != nil {
		return err
	}
	installed, err := c.RemoveInstalled(ctx)
	a.printChanges(installed)
	if err != nil {
		return err
	}
	if err := c.WaitNamespaceGone(ctx); err != nil {
		return waitOver(fmt.Errorf("context %s: wait for the namespace %s to end: %w", c.Context, c.Namespace, err))
	}
	if len(written)+len(installed) == 0 && !started {
		p.line("%s: there was no strait", c.Context)
		return nil
	}
	p.line("%s: strait is gone", c.Context)
	return nil
}

// forgetDNS undoes dns setup, before the CRD goes: without that a CoreDNS that starts would wait for it, and answer
// nobody.
func (a *app) forgetDNS(ctx context.Context, t target, c *cluster.Cluster) error {
	taught, err := c.HasDNSRights(ctx)
	if err != nil || !taught {
		return err
	}
	err = a.dnsSetup(ctx, t, c.Context, true, false)
	if errors.Is(err, cluster.ErrNoCoreDNS) {
		return c.RemoveDNSRights(ctx)
	}
	return err
}
