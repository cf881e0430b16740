package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/chart"
	"strait.io/strait/install/cluster"
)

// target has the flags that all commands for an API server share.
type target struct {
	kubeconfig, namespace string
	login                 cli.Login
	timeout               time.Duration
	dryRun                bool
}

func (t *target) flags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&t.kubeconfig, "kubeconfig", "", "`file` with contexts (default: the one that kubectl uses)")
	f.StringVarP(&t.namespace, "namespace", "n", chart.Namespace, "strait's `namespace`")
	f.DurationVar(&t.timeout, "timeout", 5*time.Minute, "give up waiting after this `time`")
	cli.LoginFlags(c, &t.login)
	c.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if o, err := cmd.Flags().GetString("output"); err != nil || o != "table" {
			return cli.UsageError("%s prints its progress as text: there is no --output %s", cmd.CommandPath(), o)
		}
		return nil
	}
}

func (t *target) open(context string) (*cluster.Cluster, error) {
	return cluster.Open(cluster.Options{Kubeconfig: t.kubeconfig, Context: context, Namespace: t.namespace, Login: t.login})
}

// waiting bounds a wait by --timeout. The cause of its end is an error with exit code exitWaitOver.
func (t *target) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, t.timeout, cli.Exit(cli.ExitWaitOver, fmt.Errorf("not done within %s; use --timeout to wait longer", t.timeout)))
}

// within does something that must end before --timeout.
func (t *target) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		return waitOver(fmt.Errorf("%w (%v)", context.Cause(ctx), err))
	}
	return err
}

// waitOver gives the error of a wait that ran out its exit code, and keeps its text.
func waitOver(err error) error {
	var over *cli.ExitError
	if errors.As(err, &over) && over.Code == cli.ExitWaitOver {
		return cli.Exit(cli.ExitWaitOver, err)
	}
	return err
}

// unknown gives the error of a command that only asks the exit code for what it could not find out.
func unknown(err error) error {
	var already *cli.ExitError
	var failure *api.Failure // which has an exit code of its own
	if err == nil || errors.As(err, &already) || errors.As(err, &failure) {
		return err
	}
	return cli.Exit(cli.ExitUnknown, err)
}

// printChanges prints what was done. It skips objects that were unchanged.
func printChanges(a *cli.App, changes []cluster.Change) {
	p := a.Printer()
	for _, c := range changes {
		why := cmp.Or(c.Why, string(c.Pods))
		if why != "" {
			why = " (" + why + ")"
		}
		if c.Did != "unchanged" {
			p.Line("  %-8s %s %s%s", c.Did, c.Kind, c.Name, why)
		}
	}
}

func (t *target) openAll(contexts []string) (out []*cluster.Cluster, err error) {
	for _, name := range contexts {
		c, err := t.open(name)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// together does something for each cluster, all at the same time, and joins the errors.
func together[T any](clusters []T, do func(T) error) error {
	errs := make([]error, len(clusters))
	var wg sync.WaitGroup
	for i, c := range clusters {
		wg.Go(func() { errs[i] = do(c) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// clearTime bounds the removal of what a command made for a moment.
const clearTime = 2 * time.Minute

// clearing bounds a removal, which goes on when the command is interrupted.
func clearing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), clearTime)
}
