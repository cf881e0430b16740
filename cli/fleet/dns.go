package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/corefile"
	"strait.io/strait/internal/coredns"
)

// clustersetZone is the zone of the MCS API.
const clustersetZone = "clusterset.local"

func DNSCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "dns",
		Short:   "Make a cluster's CoreDNS answer for clusterset.local",
		Example: "  strait dns setup --context c1\n  strait dns setup --context c1 --undo",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(dnsSetupCommand(a))
	return c
}

func dnsSetupCommand(a *cli.App) *cobra.Command {
	var t target
	var context string
	var e dnsEdit
	var force bool
	c := &cobra.Command{
		Use:   "setup",
		Short: "Add the zone clusterset.local to CoreDNS, or remove it",
		Long: `Add the zone and "multicluster clusterset.local" to the plugin kubernetes in the Corefile, let
CoreDNS read ServiceImports, and restart it, pod by pod. The rest of the Corefile stays as it is,
comments included. CoreDNS must be 1.12.2 or newer. If you cannot change CoreDNS, let strait itself
answer: docs/kubernetes.md.

With --fall-through, a name such as cart.shop.svc.cluster.local, for which the cluster has no
Service, is answered like cart.shop.svc.clusterset.local.`,
		Example: `  strait dns setup --context c1 --dry-run
  strait dns setup --context c1
  strait dns setup --context c1 --fall-through`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return dnsSetup(cmd.Context(), a, t, context, e, force)
		},
	}
	c.Flags().StringVar(&context, "context", "", "`name` of the kubeconfig context (default: the current one)")
	t.flags(c)
	c.Flags().BoolVar(&e.undo, "undo", false, "remove the zone again, and the fall-through")
	c.Flags().BoolVar(&e.fallThrough, "fall-through", false, "answer local names that the cluster lacks from the clusterset")
	c.MarkFlagsMutuallyExclusive("undo", "fall-through")
	c.Flags().BoolVar(&force, "force", false, "continue even if CoreDNS seems too old")
	c.Flags().BoolVar(&t.dryRun, "dry-run", false, "print the Corefile that would be written, and change nothing")
	return c
}

// dnsEdit is what to do to a Corefile.
type dnsEdit struct{ undo, fallThrough bool }

// front makes the change to a resolver in front of CoreDNS, whose own Corefile has what the
// cluster's zone is.
func (e dnsEdit) front(text, coreDNS string) (string, error) {
	local, err := corefile.LocalZone(coreDNS, clustersetZone)
	if err != nil {
		return "", err
	}
	if e.undo {
		return corefile.RemoveForwarded(text, clustersetZone, local)
	}
	return corefile.AddForwarded(text, clustersetZone, local)
}

func (e dnsEdit) apply(text string) (string, error) {
	if e.undo {
		return corefile.Remove(text, clustersetZone)
	}
	text, err := corefile.Add(text, clustersetZone)
	if err != nil || !e.fallThrough {
		return text, err
	}
	return corefile.AddFallThrough(text, clustersetZone)
}

func dnsSetup(ctx context.Context, a *cli.App, t target, name string, e dnsEdit, force bool) error {
	c, err := t.open(name)
	if err != nil {
		return err
	}
	dns, err := c.ReadDNS(ctx)
	if errors.Is(err, cluster.ErrNoCoreDNS) {
		return fmt.Errorf("%w\nlet strait itself answer: docs/kubernetes.md, \"DNS without CoreDNS's multicluster\"", err)
	}
	if err != nil {
		return err
	}
	if !e.undo {
		if err := dnsReady(ctx, a, c, dns, force); err != nil {
			return err
		}
	}
	text, err := e.apply(dns.Corefile)
	if err != nil {
		return fmt.Errorf("context %s: ConfigMap kube-system/coredns: %w", c.Context, err)
	}
	front, frontText, err := frontDNS(ctx, a, c, dns, e)
	if err != nil {
		return err
	}
	if t.dryRun {
		printCorefiles(a, dns, text, front, frontText)
		return nil
	}
	if e.undo {
		err = dnsUndo(ctx, a, t, c, dns, text)
	} else {
		var changes []cluster.Change
		changes, err = c.DNSRights(ctx, dns, false)
		printChanges(a, changes)
		if err == nil {
			err = writeDNS(ctx, a, t, c, dns, text, !e.undo)
		}
	}
	if err != nil || front == nil {
		return err
	}
	return writeDNS(ctx, a, t, c, *front, frontText, !e.undo)
}

// frontDNS returns NodeLocal DNSCache and its Corefile as it should be; nil if there is none, or
// none that can be changed.
func frontDNS(ctx context.Context, a *cli.App, c *cluster.Cluster, dns cluster.DNS, e dnsEdit) (*cluster.DNS, string, error) {
	front, err := c.ReadNodeLocalDNS(ctx)
	if err != nil || front == nil {
		return nil, "", err
	}
	text, err := e.front(front.Corefile, dns.Corefile)
	switch {
	case errors.Is(err, corefile.ErrNoForward) && e.undo:
		return nil, "", nil
	case err != nil:
		a.Printer().Line("! %s: ConfigMap kube-system/%s: %v; pods that ask NodeLocal DNSCache cannot resolve %s: forward that zone to CoreDNS there",
			c.Context, front.ConfigMap, err, clustersetZone)
		return nil, "", nil
	}
	return front, text, nil
}

// printCorefiles prints what would be written. If there are two files, each has its name before it.
func printCorefiles(a *cli.App, dns cluster.DNS, text string, front *cluster.DNS, frontText string) {
	p := a.Printer()
	lines := func(text string) {
		for line := range strings.Lines(text) {
			p.Line("%s", strings.TrimSuffix(line, "\n"))
		}
	}
	if front == nil {
		lines(text)
		return
	}
	p.Line("# ConfigMap kube-system/%s", dns.ConfigMap)
	lines(text)
	p.Line("# ConfigMap kube-system/%s, of NodeLocal DNSCache", front.ConfigMap)
	lines(frontText)
}

// dnsReady returns an error if CoreDNS would fail with the new Corefile.
func dnsReady(ctx context.Context, a *cli.App, c *cluster.Cluster, dns cluster.DNS, force bool) error {
	if has, err := c.HasImports(ctx); err != nil {
		return fmt.Errorf("context %s: look for the CRD ServiceImport: %w", c.Context, err)
	} else if !has {
		return fmt.Errorf("context %s: the CRD ServiceImport is missing, and CoreDNS would wait for it; run strait install first", c.Context)
	}
	switch yes, known := coredns.Multicluster(dns.Image); {
	case !known:
		a.Printer().Line("! %s: cannot tell the version of image %s: CoreDNS must be 1.12.2 or newer", c.Context, dns.Image)
	case !yes && !force:
		return fmt.Errorf("context %s: CoreDNS %s is older than 1.12.2 and does not support multicluster; upgrade it, let strait itself answer (docs/kubernetes.md), or use --force if the tag is wrong",
			c.Context, dns.Image)
	}
	return nil
}

func dnsUndo(ctx context.Context, a *cli.App, t target, c *cluster.Cluster, dns cluster.DNS, text string) error {
	if err := writeDNS(ctx, a, t, c, dns, text, false); err != nil {
		return err
	}
	if err := c.RemoveDNSRights(ctx); err != nil {
		return fmt.Errorf("context %s: remove CoreDNS's right to read ServiceImports: %w", c.Context, err)
	}
	return nil
}

// writeDNS writes what differs and waits for CoreDNS, even if it restarts nothing itself: an
// earlier attempt may have restarted CoreDNS and stopped waiting.
func writeDNS(ctx context.Context, a *cli.App, t target, c *cluster.Cluster, dns cluster.DNS, text string, answers bool) error {
	changed, err := c.WriteDNS(ctx, dns, text, answers)
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
		as = "the Corefile is already up to date; "
	}
	does := "no longer answers"
	if answers {
		does = "answers"
	}
	a.Printer().Line("%s: %s%s %s for %s", c.Context, as, dns.Title(), does, clustersetZone)
	return nil
}
