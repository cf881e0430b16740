package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/install/cluster"
	"strait.io/strait/install/corefile"
)

// clustersetZone is the zone of the MCS API.
const clustersetZone = "clusterset.local"

func (a *app) dnsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "dns",
		Short:   "Have a cluster's CoreDNS answer for clusterset.local",
		Long:    "Have a cluster's CoreDNS answer for clusterset.local, or stop it.",
		Example: "  strait dns setup --context c1",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.dnsSetupCommand())
	return c
}

func (a *app) dnsSetupCommand() *cobra.Command {
	var t target
	var context string
	var undo, force bool
	c := &cobra.Command{
		Use:   "setup",
		Short: "Teach CoreDNS the zone clusterset.local",
		Long: `Put the zone and "multicluster clusterset.local" into the Corefile's plugin kubernetes, let CoreDNS read ServiceImports, and
restart it, pod by pod. The rest of the Corefile stays as it is, comments too. It takes CoreDNS 1.12.2 or newer.
Where CoreDNS is not yours to change, have strait answer itself: docs/kubernetes.md.`,
		Example: `  strait dns setup --context c1 --dry-run
  strait dns setup --context c1
  strait dns setup --context c1 --undo`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.dnsSetup(cmd.Context(), t, context, undo, force)
		},
	}
	c.Flags().StringVar(&context, "context", "", "`name` of the kubeconfig's context (default: the current one)")
	t.flags(c)
	c.Flags().BoolVar(&undo, "undo", false, "take it out again")
	c.Flags().BoolVar(&force, "force", false, "go on although CoreDNS seems too old")
	c.Flags().BoolVar(&t.dryRun, "dry-run", false, "print the Corefile as it would be, and do nothing")
	return c
}

func (a *app) dnsSetup(ctx context.Context, t target, name string, undo, force bool) error {
	c, err := t.open(name)
	if err != nil {
		return err
	}
	dns, err := c.ReadDNS(ctx)
	if errors.Is(err, cluster.ErrNoCoreDNS) {
		return fmt.Errorf("%w\nhave strait answer itself: docs/kubernetes.md, \"DNS without CoreDNS's multicluster\"", err)
	}
	if err != nil {
		return err
	}
	if !undo {
		if err := a.dnsReady(ctx, c, dns, force); err != nil {
			return err
		}
	}
	edit := corefile.Add
	if undo {
		edit = corefile.Remove
	}
	text, err := edit(dns.Corefile, clustersetZone)
	if err != nil {
		return fmt.Errorf("context %s: ConfigMap kube-system/coredns: %w", c.Context, err)
	}
	p := a.printer()
	if t.dryRun {
		for line := range strings.Lines(text) {
			p.line("%s", strings.TrimSuffix(line, "\n"))
		}
		return nil
	}
	if undo {
		return a.dnsUndo(ctx, t, c, dns, text)
	}
	changes, err := c.DNSRights(ctx, dns, false)
	a.printChanges(changes)
	if err != nil {
		return err
	}
	return a.writeDNS(ctx, t, c, dns, text, "answers")
}

// dnsReady says what would make CoreDNS fail.
func (a *app) dnsReady(ctx context.Context, c *cluster.Cluster, dns cluster.DNS, force bool) error {
	if has, err := c.HasImports(ctx); err != nil {
		return fmt.Errorf("context %s: look for the CRD of ServiceImport: %w", c.Context, err)
	} else if !has {
		return fmt.Errorf("context %s: there is no CRD of ServiceImport, for which CoreDNS would wait: strait install first", c.Context)
	}
	switch yes, known := cluster.KnowsMulticluster(dns.Image); {
	case !known:
		a.printer().line("! %s: the image %s does not say its version: CoreDNS must be 1.12.2 or newer", c.Context, dns.Image)
	case !yes && !force:
		return fmt.Errorf("context %s: CoreDNS %s is older than 1.12.2 and does not know multicluster: upgrade it; or have strait answer itself: docs/kubernetes.md; --force if the tag is wrong",
			c.Context, dns.Image)
	}
	return nil
}

func (a *app) dnsUndo(ctx context.Context, t target, c *cluster.Cluster, dns cluster.DNS, text string) error {
	if err := a.writeDNS(ctx, t, c, dns, text, "no longer answers"); err != nil {
		return err
	}
	if err := c.RemoveDNSRights(ctx); err != nil {
		return fmt.Errorf("context %s: take CoreDNS's right to read ServiceImports: %w", c.Context, err)
	}
	return nil
}

// writeDNS writes what differs, and waits for CoreDNS, whoever restarted it: an earlier attempt may have given up.
func (a *app) writeDNS(ctx context.Context, t target, c *cluster.Cluster, dns cluster.DNS, text, does string) error {
	changed, err := c.WriteDNS(ctx, dns, text, does == "answers")
	if err != nil {
		return err
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	if err := c.WaitDNS(ctx, dns); err != nil {
		return waitOver(err)
	}
	as := ""
	if !changed {
		as = "the Corefile is as it should be; "
	}
	a.printer().line("%s: %sCoreDNS %s for %s", c.Context, as, does, clustersetZone)
	return nil
}
