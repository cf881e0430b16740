package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// drainable is the place where the drain of a cluster is stored.
type drainable struct {
	target
	context string
	dir     string // of YAML, outside Kubernetes
}

func (d *drainable) flag(c *cobra.Command) {
	c.Flags().StringVar(&d.context, "context", "", "`name` of the kubeconfig context (default: the current one)")
	c.Flags().StringVar(&d.dir, "manifest", "", "outside Kubernetes: the `directory` of YAML (source.manifest)")
	d.target.flags(c)
}

const drainLong = `Take all endpoints of a cluster out of use. Within a second, no node of any cluster gives them new
connections while others can take these; connections that exist stay. The drain is an annotation of
strait's Namespace, strait.io/drain, so it survives restarts. strait cluster undrain ends it.

If no other endpoint serves some Service, drain refuses, because that Service's endpoints would stay
in use; with --force it drains the rest. With --over, the share shrinks little by little. With
--dry-run, it only says what would happen, as strait explain --what-if does. strait cluster status
counts the connections that are still open.

Outside Kubernetes, --manifest names the directory of YAML that the cluster's daemons read, and the
daemon of this machine is asked what would happen.`

func drainCommand(a *cli.App) *cobra.Command {
	var d drainable
	var over time.Duration
	var force bool
	c := &cobra.Command{
		Use:   "drain CLUSTER",
		Short: "Take all endpoints of a cluster out of use",
		Long:  drainLong,
		Example: `  strait cluster drain us-east --context us-east --dry-run
  strait cluster drain us-east --context us-east --over 5m
  strait cluster drain rack2 --manifest /etc/strait/manifests`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if over < 0 || over > clustermesh.MaxDrainOver {
				return cli.UsageError("--over %s: want a time from 0s to %s", over, clustermesh.MaxDrainOver)
			}
			return d.within(cmd.Context(), func(ctx context.Context) error { return drain(ctx, a, d, args[0], over, force) })
		},
	}
	c.Flags().DurationVar(&over, "over", 0, "let the share shrink over this `time`")
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "only say what would happen")
	c.Flags().BoolVar(&force, "force", false, "drain even if some Services have no other endpoint")
	d.flag(c)
	return c
}

func drain(ctx context.Context, a *cli.App, d drainable, id string, over time.Duration, force bool) error {
	answer, err := afterDrain(ctx, a, d, id)
	switch {
	case err != nil && d.dryRun:
		return unknown(err)
	case err != nil:
		return err
	}
	p := a.Printer()
	a.ShowWhatIf(p, answer, false)
	switch {
	case d.dryRun:
		return nil
	case d.dir != "" && answer.SeenFrom.Cluster != id: // the API server of a --context is asked for its own
		return cli.UsageError("this machine is in cluster %q; drain %q on a machine of that cluster", answer.SeenFrom.Cluster, id)
	case len(answer.Alone) > 0 && !force:
		return cli.Exit(cli.ExitProblem, fmt.Errorf("not drained: no other endpoint serves %s; give them endpoints elsewhere, or pass --force", cli.Some(answer.Alone, 5)))
	}
	if err := writeDrain(ctx, a, d, id, clustermesh.DrainValue(a.Now(), over)); err != nil || d.dir != "" {
		return err
	}
	p.Line("next: strait cluster status %s --context NAME, with the contexts of all clusters, counts the connections that are still open", id)
	return nil
}

// afterDrain asks a daemon of the cluster what a drain would do.
func afterDrain(ctx context.Context, a *cli.App, d drainable, id string) (*api.WhatIf, error) {
	if d.dir != "" {
		return cli.AskHere(ctx, a, func(c *client.Client, ctx context.Context) (*api.WhatIf, error) {
			return c.WhatIf(ctx, "drain "+id, "", "")
		})
	}
	c, err := d.open(d.context)
	if err != nil {
		return nil, err
	}
	return c.WhatIf(ctx, "drain "+id)
}

// writeDrain sets or removes the annotation of strait's Namespace.
func writeDrain(ctx context.Context, a *cli.App, d drainable, id, value string) error {
	did := "drained"
	if value == "" {
		did = "not drained any more"
	}
	if d.dir != "" {
		if err := drainInDir(d.dir, id, value); err != nil {
			return err
		}
		a.Printer().Line("cluster %s is %s: %s", id, did, drainFile(d.dir))
		return nil
	}
	c, err := d.open(d.context)
	if err != nil {
		return err
	}
	switch own, err := c.ID(ctx); {
	case err != nil:
		return err
	case own != id:
		return cli.UsageError("context %s is cluster %q, not %q", c.Context, own, id)
	}
	if err := c.AnnotateNamespace(ctx, clustermesh.AnnotationDrain, value); err != nil {
		return err
	}
	a.Printer().Line("cluster %s is %s: annotation %s of Namespace %s", id, did, clustermesh.AnnotationDrain, c.Namespace)
	return nil
}
