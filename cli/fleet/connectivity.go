package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/cli/connectivity"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
)

// connectivityFlags are the flags of connectivity test.
type connectivityFlags struct {
	target
	contexts         []string
	namespace, junit string
	keep, all, host  bool
	perf             bool
}

func ConnectivityCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "connectivity",
		Short:   "Test with real calls whether pods and nodes of clusters reach each other's Services",
		Example: "  strait connectivity test --context c1 --context c2\n  strait connectivity test --context c1",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(connectivityTestCommand(a))
	return c
}

const connectivityLong = `Make a few small pods in each cluster, of the image that strait runs already, export them, and
call them from each cluster: by ClusterSetIP, by every kind of name, and by the pods' own
addresses, over TCP and UDP, IPv4 and IPv6, with small and large packets, from pods and from the
nodes' own network. Then print who reaches whom, explain each failure by the part that is to blame,
and remove everything.

All that is made is in one namespace, which the test deletes at the end, and when it is interrupted.
What an earlier test left is removed first. With one context alone, only that cluster is tested.`

func connectivityTestCommand(a *cli.App) *cobra.Command {
	var f connectivityFlags
	var noHost bool
	c := &cobra.Command{
		Use:   "test [CONTEXT...]",
		Short: "Call every cluster from every cluster, and explain what fails",
		Long:  connectivityLong,
		Example: `  strait connectivity test c1 c2
  strait connectivity test --context c1 --context c2 --all-nodes --junit strait.xml
  strait connectivity test --context c1 --context c2 --perf
  strait connectivity test --context c1 --no-host -o json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.CompleteContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.host = !noHost; len(args) > 0 && !cmd.Flags().Changed("context") {
				f.contexts = nil // not the current one
			}
			f.contexts = append(f.contexts, args...)
			return connectivityTest(cmd.Context(), a, f)
		},
	}
	c.Flags().StringArrayVar(&f.contexts, "context", []string{""}, "`name` of a kubeconfig context; repeatable (default: the current one)")
	f.flags(c)
	c.PreRunE = nil // unlike the others, it has an answer for -o
	c.Flags().StringVar(&f.namespace, "test-namespace", "strait-connectivity-test", "`name` of the test's namespace")
	c.Flags().BoolVar(&f.all, "all-nodes", false, "use all nodes, not two of each cluster")
	c.Flags().BoolVar(&noHost, "no-host", false, "make no pods in the nodes' own network, which a cluster can forbid")
	c.Flags().BoolVar(&f.perf, "perf", false, "also measure each pair: connects, throughput, round trips, MTU")
	c.Flags().StringVar(&f.junit, "junit", "", "also write the results to a `file`, as JUnit does")
	c.Flags().BoolVar(&f.keep, "keep", false, "leave the pods where they are, to look at them")
	return c
}

// site is one cluster of a test.
type site struct {
	ground
	connectivity.Cluster
	setup connectivity.Setup
}

// trial is one run of the test.
type trial struct {
	a      *cli.App
	f      connectivityFlags
	sites  []*site
	report connectivity.Report
	facts  connectivity.Facts
}

func connectivityTest(ctx context.Context, a *cli.App, f connectivityFlags) error {
	grounds := map[string]ground{}
	for _, name := range f.contexts {
		c, err := f.open(name)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		grounds[c.Context] = realGround{cluster.Trial{Cluster: c, Name: f.namespace, Label: connectivity.Label, Elsewhere: "name another one with --test-namespace"}}
	}
	t := trial{a: a, f: f}
	return t.run(ctx, grounds)
}

// run makes the test on the grounds, by their contexts.
func (t *trial) run(ctx context.Context, grounds map[string]ground) (err error) {
	waiting, cancel := t.f.waiting(ctx)
	defer cancel()
	if err := t.open(waiting, grounds); err != nil {
		return unknown(err)
	}
	if !t.f.keep {
		defer func() { err = errors.Join(err, t.clear(ctx)) }()
	}
	began := t.a.Now()
	if err := t.make(waiting); err != nil {
		return unknown(waitOver(err))
	}
	if err := t.call(waiting); err != nil {
		return unknown(waitOver(err))
	}
	if t.f.perf {
		if err := t.measure(waiting); err != nil {
			return unknown(waitOver(err))
		}
	}
	if t.report.Count(connectivity.Failed) > 0 {
		t.findOut(waiting)
		t.report.Causes = connectivity.Causes(t.report.Results, t.facts)
	}
	return t.show(t.a.Now().Sub(began))
}

// clear removes what was made.
func (t *trial) clear(ctx context.Context) error {
	ctx, cancel := clearing(ctx)
	defer cancel()
	err := together(t.sites, func(s *site) error {
		_, err := s.Clear(ctx)
		return err
	})
	if err == nil {
		t.tell("everything that was made is removed")
	}
	return err
}

// tell prints progress: where the results are data, not among them.
func (t *trial) tell(format string, args ...any) {
	if t.a.Output == "table" {
		t.a.Printer().Line(format, args...)
		return
	}
	t.a.Hint(format, args...)
}

// show prints the report, and returns the exit code without a text.
func (t *trial) show(took time.Duration) error {
	t.report.Meta = api.Meta{APIVersion: api.APIVersion, Kind: "ConnectivityReport"}
	if t.f.junit != "" {
		if err := writeConnectivityJUnit(t.f.junit, t.report); err != nil {
			return err
		}
	}
	done, err := t.a.Data(t.report)
	if err != nil {
		return err
	}
	if !done {
		printConnectivity(t.a.Printer(), t.report, took)
	}
	switch {
	case t.report.Count(connectivity.Failed) > 0:
		return cli.Exit(cli.ExitProblem, nil)
	case t.report.Count(connectivity.Unknown) > 0:
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}

func writeConnectivityJUnit(path string, r connectivity.Report) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--junit: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	because := map[int]string{}
	for _, c := range r.Causes {
		for _, i := range c.Results {
			because[i] = causeText(c)
		}
	}
	var cases []cli.JUnitCase
	for i, x := range r.Results {
		one := cli.JUnitCase{Class: x.From + " " + x.Kind + " to " + x.To, Name: resultTitle(x), Text: cli.Clean(because[i])}
		switch x.State {
		case connectivity.Failed:
			one.Failure = x.Error
		case connectivity.Unknown:
			one.Error = x.Error
		default:
			one.Text = cli.Clean(x.Note)
		}
		cases = append(cases, one)
	}
	return cli.WriteJUnit(file, "strait connectivity test", cases)
}
