package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/install/cluster"
)

func UninstallCommand(a *cli.App) *cobra.Command {
	var t target
	var context string
	var force bool
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove strait from a Kubernetes cluster and its nodes",
		Long: `Remove strait from the cluster of a context. First its daemons withdraw what they announce, so that
other clusters stop using it. Then these are removed: hooks, tunnel, routes and state of every node;
what dns setup added to CoreDNS; imports, derived Services and slices that strait wrote; its RBAC
rules and its namespace. A CRD is removed if install created it and no objects of it are left.
uninstall says what stays, and why. Services of other clusters stop answering here.

The other clusters keep looking for its nodes until you run strait clusterset disconnect.`,
		Example: `  strait uninstall --context c1
  strait uninstall --context c1 --force    # even if a node does not answer`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return uninstall(cmd.Context(), a, t, context, force)
		},
	}
	c.Flags().StringVar(&context, "context", "", "`name` of the kubeconfig context (default: the current one)")
	t.flags(c)
	c.Flags().BoolVar(&force, "force", false, "continue even if daemons, nodes or CoreDNS fail; they stay as they are")
	return c
}

func uninstall(ctx context.Context, a *cli.App, t target, name string, force bool) error {
	c, err := t.open(name)
	if err != nil {
		return err
	}
	if err := c.OnlyHere(ctx); err != nil {
		return err
	}
	p := a.Printer()
	deaf, err := c.Withdraw(ctx, func(s string) { p.Line("%s: %s", c.Context, s) })
	switch {
	case err != nil && !force:
		return err
	case err != nil:
		p.Line("! %v", err)
	case len(deaf) > 0:
		p.Line("! %s: the withdrawal was not heard by %s: what is known there of this cluster's Services stays in force", c.Context, strings.Join(deaf, ", "))
	}
	cleaned, err := cleanNodes(ctx, a, t, c, force)
	if err != nil {
		return err
	}
	if err := forgetDNS(ctx, a, t, c, force); err != nil {
		return err
	}
	written, err := c.RemoveWritten(ctx)
	printChanges(a, written)
	if err != nil {
		return err
	}
	installed, err := c.RemoveInstalled(ctx)
	printChanges(a, installed)
	if err != nil {
		return err
	}
	wait, cancel := t.waiting(ctx)
	defer cancel()
	if err := c.WaitNamespaceGone(wait); err != nil {
		return waitOver(fmt.Errorf("context %s: wait for namespace %s to be deleted: %w", c.Context, c.Namespace, err))
	}
	if len(written)+len(installed) == 0 && !cleaned {
		p.Line("%s: strait was not installed", c.Context)
		return nil
	}
	p.Line("%s: strait is removed", c.Context)
	return nil
}

// cleanNodes removes strait's traces from every node, or with force from those that answer. It
// reports false if there was no daemon.
func cleanNodes(ctx context.Context, a *cli.App, t target, c *cluster.Cluster, force bool) (bool, error) {
	p := a.Printer()
	started, err := c.StartCleanup(ctx, t.waiting, force)
	if err != nil {
		return false, unclean(err)
	}
	if !started {
		return false, nil
	}
	wait, cancel := t.waiting(ctx)
	defer cancel()
	pods, err := c.WaitDaemonSet(wait, cluster.Cleanup, func(s string) { p.Line("%s: %s", c.Context, s) })
	switch {
	case err == nil:
		p.Line("%s: %d nodes are clean", c.Context, pods)
	case !force:
		return true, unclean(err)
	default:
		p.Line("! %s: not all nodes are clean: %v", c.Context, err)
	}
	return true, nil
}

func unclean(err error) error {
	return waitOver(fmt.Errorf("%w; run the command again, or with --force to leave those nodes as they are", err))
}

// forgetDNS undoes dns setup, before the CRD is deleted: otherwise a CoreDNS that starts would wait
// for the CRD and answer no queries. With force it continues if CoreDNS does not restart: the
// Corefile that CoreDNS reads once it does is already undone.
func forgetDNS(ctx context.Context, a *cli.App, t target, c *cluster.Cluster, force bool) error {
	taught, err := c.HasDNSRights(ctx)
	if err != nil || !taught {
		return err
	}
	err = dnsSetup(ctx, a, t, c.Context, dnsEdit{undo: true}, false)
	var over *cli.ExitError
	switch {
	case errors.Is(err, cluster.ErrNoCoreDNS):
		return c.RemoveDNSRights(ctx)
	case force && errors.As(err, &over) && over.Code == cli.ExitWaitOver:
		a.Printer().Line("! %v", err)
		return c.RemoveDNSRights(ctx)
	}
	return err
}
