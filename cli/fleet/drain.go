package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
)

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
			return d.at(cmd.Context(), a, func(ctx context.Context, place drainPlace) error {
				return drain(ctx, a, place, args[0], clustermesh.DrainValue(a.Now(), over), d.dryRun, force)
			})
		},
	}
	c.Flags().DurationVar(&over, "over", 0, "let the share shrink over this `time`")
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "only say what would happen")
	c.Flags().BoolVar(&force, "force", false, "drain even if some Services have no other endpoint")
	d.flag(c)
	return c
}

// drain shows what a drain would do, and drains the cluster of a place unless a Service would stay
// on it.
func drain(ctx context.Context, a *cli.App, place drainPlace, id, value string, dryRun, force bool) error {
	answer, err := place.whatIf(ctx, id)
	switch {
	case err != nil && dryRun:
		return unknown(err)
	case err != nil:
		return err
	}
	p := a.Printer()
	a.ShowWhatIf(p, answer, false)
	switch {
	case dryRun:
		return nil
	case len(answer.Alone) > 0 && !force:
		return cli.Exit(cli.ExitProblem, fmt.Errorf("not drained: no other endpoint serves %s; give them endpoints elsewhere, or pass --force", cli.Some(answer.Alone, 5)))
	}
	where, err := place.write(ctx, id, value)
	if err != nil {
		return err
	}
	p.Line("cluster %s is drained: %s", id, where)
	if place.counts() {
		p.Line("next: strait cluster status %s --context NAME, with the contexts of all clusters, counts the connections that are still open", id)
	}
	return nil
}

// undrain ends the drain of a place.
func undrain(ctx context.Context, a *cli.App, place drainPlace, id string) error {
	where, err := place.write(ctx, id, "")
	if err == nil {
		a.Printer().Line("cluster %s is not drained any more: %s", id, where)
	}
	return err
}
