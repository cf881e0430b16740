package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
		Long: `Remove strait from the cluster of a context. First its daemons withdraw what they announce, so that other clusters use
it no longer. Then go: hooks, tunnel, routes and state of every node; what dns setup taught CoreDNS; imports, derived
Services and slices that strait wrote; its rights and its namespace. CRDs go if install made them and nobody has objects
of them. It says what stays, and why. Services of other clusters stop answering here.

The other clusters go on looking for its nodes, until strait clusterset disconnect.`,
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
	c.Flags().BoolVar(&force, "force", false, "go on although nodes could not be cleaned, or CoreDNS does not restart")
	return c
}

func (a *app) uninstall(ctx context.Context, t target, name string, force bool) error {
	c, err := t.open(name)
	if err != nil {
		return err
	}
	if err := c.OnlyHere(ctx); err != nil {
		return err
	}
	p := a.printer()
	deaf, err := c.Withdraw(ctx, func(s string) { p.line("%s: %s", c.Context, s) })
	switch {
	case err != nil && !force:
		return err
	case err != nil:
		p.line("! %v", err)
	case len(deaf) > 0:
		p.line("! %s: not heard by %s: there, what is known of this cluster's Services stays in force", c.Context, strings.Join(deaf, ", "))
	}
	cleaned, err := a.cleanNodes(ctx, t, c, force)
	if err != nil {
		return err
	}
	if err := a.forgetDNS(ctx, t, c, force); err != nil {
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
	wait, cancel := t.waiting(ctx)
	defer cancel()
	if err := c.WaitNamespaceGone(wait); err != nil {
		return waitOver(fmt.Errorf("context %s: wait for the namespace %s to end: %w", c.Context, c.Namespace, err))
	}
	if len(written)+len(installed) == 0 && !cleaned {
		p.line("%s: there was no strait", c.Context)
		return nil
	}
	p.line("%s: strait is gone", c.Context)
	return nil
}

// cleanNodes takes strait's traces from every node, or with force from those that answer. It reports false where
// there was no daemon.
func (a *app) cleanNodes(ctx context.Context, t target, c *cluster.Cluster, force bool) (bool, error) {
	p := a.printer()
	started, err := c.StartCleanup(ctx, t.waiting, force)
	if err != nil {
		return false, unclean(err)
	}
	if !started {
		return false, nil
	}
	wait, cancel := t.waiting(ctx)
	defer cancel()
	pods, err := c.WaitDaemonSet(wait, cluster.Cleanup, func(s string) { p.line("%s: %s", c.Context, s) })
	switch {
	case err == nil:
		p.line("%s: %d nodes are clean", c.Context, pods)
	case !force:
		return true, unclean(err)
	default:
		p.line("! %s: not all nodes are clean: %v", c.Context, err)
	}
	return true, nil
}

func unclean(err error) error {
	return waitOver(fmt.Errorf("%w; run it again, or with --force to leave those nodes as they are", err))
}

// forgetDNS undoes dns setup, before the CRD goes: without that a CoreDNS that starts would wait for it, and answer
// nobody. With force it goes on where CoreDNS does not restart: what it reads when it does is undone.
func (a *app) forgetDNS(ctx context.Context, t target, c *cluster.Cluster, force bool) error {
	taught, err := c.HasDNSRights(ctx)
	if err != nil || !taught {
		return err
	}
	err = a.dnsSetup(ctx, t, c.Context, true, false)
	var over *exitError
	switch {
	case errors.Is(err, cluster.ErrNoCoreDNS):
		return c.RemoveDNSRights(ctx)
	case force && errors.As(err, &over) && over.code == exitWaitOver:
		a.printer().line("! %v", err)
		return c.RemoveDNSRights(ctx)
	}
	return err
}
