package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
)

const remainingLong = `Show how far the drain of a cluster is, and how many connections each node still has open to it.
Every daemon of the contexts' clusters is asked. Nodes of other clusters have connections too, so
name the contexts of all clusters; nodes that were not asked are listed.

With --wait, it waits until every node says that nothing is left, for at most --timeout.

It counts TCP and connected UDP that went to the cluster through a Service. It does not count what
kube-proxy or a gateway carries. Outside Kubernetes, ask each node: strait status.`

func remainingCommand(a *cli.App) *cobra.Command {
	var t target
	var contexts []string
	var wait bool
	c := &cobra.Command{
		Use:   "status CLUSTER",
		Short: "Show how far a drain is, and the connections that are still open on each node",
		Long:  remainingLong,
		Example: `  strait cluster status us-east --context us-east --context us-west
  strait cluster status us-east --context us-east --context us-west --wait --timeout 30m`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := t.openAll(contexts)
			if err != nil {
				return unknown(err)
			}
			ctx := cmd.Context()
			if wait {
				var cancel context.CancelFunc
				ctx, cancel = t.waiting(ctx)
				defer cancel()
			}
			return remaining(ctx, a, args[0], wait, func(ctx context.Context) ([]cluster.Answer, error) { return askAll(ctx, all) })
		},
	}
	c.Flags().StringArrayVar(&contexts, "context", []string{""}, "`name` of a kubeconfig context; repeatable (default: the current one)")
	c.Flags().BoolVar(&wait, "wait", false, "wait until nothing is left")
	t.flags(c)
	return c
}

// askAll asks every daemon of some clusters. Those that do not answer are an error along with the answers.
func askAll(ctx context.Context, all []*cluster.Cluster) (out []cluster.Answer, err error) {
	var errs []error
	for _, c := range all {
		id, err := c.ID(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		answers, err := c.Ask(ctx, id)
		out, errs = append(out, answers...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// remaining shows what is left of a cluster's use, and with wait again whenever that changes, until
// nothing is.
func remaining(ctx context.Context, a *cli.App, id string, wait bool, ask func(context.Context) ([]cluster.Answer, error)) error {
	shown := ""
	for {
		answers, err := ask(ctx)
		r := cluster.Remains(id, answers)
		switch {
		case ctx.Err() != nil: // what the requests say that it cut short means nothing
			return waitOver(context.Cause(ctx))
		case len(answers) == 0 && err != nil:
			return cli.Exit(cli.ExitUnknown, err)
		case len(answers) == 0:
			return cli.Exit(cli.ExitUnknown, errors.New("no daemon answers: kubectl -n strait-system get pods"))
		case !r.Known:
			return cli.UsageError("no daemon knows a cluster %q; strait members lists them", id)
		}
		if now := fmt.Sprint(r, err); now != shown {
			showRemaining(a, id, r, err)
			shown = now
		}
		if !wait || r.Over() {
			return nil
		}
		select {
		case <-ctx.Done():
			return waitOver(context.Cause(ctx))
		case <-time.After(askEvery):
		}
	}
}

// maxRemaining is how many nodes are listed.
const maxRemaining = 20

func showRemaining(a *cli.App, id string, r cluster.Remaining, failed error) {
	p := a.Printer()
	state := "not drained; drain it: strait cluster drain " + id
	if r.Drained > 0 {
		state = fmt.Sprintf("drained %s: %s on %s", api.Percent(r.Drained), api.Count(r.Open(), "open connection"), api.Count(len(r.Nodes), "node"))
	}
	p.Line("cluster %s is %s", id, state)
	var rows [][]string
	for _, n := range r.Nodes {
		if n.Open > 0 && len(rows) < maxRemaining {
			rows = append(rows, []string{n.Node, fmt.Sprint(n.Open)})
		}
	}
	if len(rows) > 0 {
		p.Table([]string{"NODE", "OPEN"}, rows)
	}
	if failed != nil {
		for line := range strings.Lines(failed.Error()) {
			p.Line("%s %s", api.Warn, cli.Clean(strings.TrimSpace(line)))
		}
	}
	if n := len(r.Unasked); n > 0 && r.Drained > 0 {
		p.Line("%s unknown of %s, to which no context leads, or which cannot say: %s", api.Warn, api.Count(n, "node"), cli.Some(r.Unasked, 5))
	}
}
