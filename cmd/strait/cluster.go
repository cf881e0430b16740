package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

func (a *app) clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Take a cluster out of use, and back",
		Long:  "Take all endpoints of a cluster out of use in the whole clusterset, and back.",
		Example: `  strait cluster drain us-east --dry-run
  strait cluster status us-east
  strait cluster undrain us-east`,
	}
	c.AddCommand(a.drainCommand(), a.remainingCommand(), a.undrainCommand())
	return c
}

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

func (a *app) drainCommand() *cobra.Command {
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
				return usageError("--over %s: want a time from 0s to %s", over, clustermesh.MaxDrainOver)
			}
			return d.within(cmd.Context(), func(ctx context.Context) error { return a.drain(ctx, d, args[0], over, force) })
		},
	}
	c.Flags().DurationVar(&over, "over", 0, "let the share shrink over this `time`")
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "only say what would happen")
	c.Flags().BoolVar(&force, "force", false, "drain even if some Services have no other endpoint")
	d.flag(c)
	return c
}

func (a *app) undrainCommand() *cobra.Command {
	var d drainable
	c := &cobra.Command{
		Use:   "undrain CLUSTER",
		Short: "Use the endpoints of a cluster again",
		Long:  "Use the endpoints of a drained cluster again. Traffic returns by the ramp (locality.ramp).",
		Example: `  strait cluster undrain us-east --context us-east
  strait cluster undrain rack2 --manifest /etc/strait/manifests`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.within(cmd.Context(), func(ctx context.Context) error { return a.writeDrain(ctx, d, args[0], "") })
		},
	}
	d.flag(c)
	return c
}

func (a *app) drain(ctx context.Context, d drainable, id string, over time.Duration, force bool) error {
	answer, err := a.afterDrain(ctx, d, id)
	if err != nil {
		return err
	}
	p := a.printer()
	a.showWhatIf(p, answer, false)
	switch {
	case d.dryRun:
		return nil
	case d.dir != "" && answer.SeenFrom.Cluster != id: // the API server of a --context is asked for its own
		return usageError("this machine is in cluster %q; drain %q on a machine of that cluster", answer.SeenFrom.Cluster, id)
	case len(answer.Alone) > 0 && !force:
		return &exitError{exitProblem, fmt.Errorf("not drained: no other endpoint serves %s; give them endpoints elsewhere, or pass --force", some(answer.Alone, 5))}
	}
	if err := a.writeDrain(ctx, d, id, clustermesh.DrainValue(a.now(), over)); err != nil || d.dir != "" {
		return err
	}
	p.line("next: strait cluster status %s --context NAME, with the contexts of all clusters, counts the connections that are still open", id)
	return nil
}

// afterDrain asks a daemon of the cluster what a drain would do.
func (a *app) afterDrain(ctx context.Context, d drainable, id string) (*api.WhatIf, error) {
	if d.dir != "" {
		return ask(ctx, a, func(c *client.Client, ctx context.Context) (*api.WhatIf, error) {
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
func (a *app) writeDrain(ctx context.Context, d drainable, id, value string) error {
	did := "drained"
	if value == "" {
		did = "not drained any more"
	}
	if d.dir != "" {
		if err := drainInDir(d.dir, id, value); err != nil {
			return err
		}
		a.printer().line("cluster %s is %s: %s", id, did, drainFile(d.dir))
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
		return usageError("context %s is cluster %q, not %q", c.Context, own, id)
	}
	if err := c.AnnotateNamespace(ctx, clustermesh.AnnotationDrain, value); err != nil {
		return err
	}
	a.printer().line("cluster %s is %s: annotation %s of Namespace %s", id, did, clustermesh.AnnotationDrain, c.Namespace)
	return nil
}
