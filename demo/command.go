// Package demo is `strait demo`: it runs a scenario on a whole clusterset on this machine, with
// real daemons, and checks its expectations.
//
// Inputs are flags and the binary straitd next to this one. Outputs are tables, JSON and an exit
// code; the machine is left as it was. Package lab builds the machines, package traffic makes the
// calls. The demo uses the daemons only as a user could: through files, the API socket and pinned
// maps.
package demo

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

const long = `demo builds a clusterset on this machine: three clusters of two nodes, joined by a routed network.
Each node is a network namespace with its own cgroup, BPF pins and straitd. Pods, and the nodes
themselves, call two Services: serve, which every cluster has, and far, which only the last cluster
has. They keep calling while things go wrong, in nine steps:

  1  client pods and nodes call serve by its name and by its ClusterSetIP
  2  the serve pods of one cluster go away, and other clusters answer
  3  they come back, and so do the calls
  4  a machine loses power, then boots again
  5  a cluster is cut off from the others, then rejoins
  6  during the cut, every straitd in that cluster is killed and restarted
  7  straitd on a client's node is killed and restarted
  8  straitd on a backend's node is killed and stays down for 30 seconds
  9  half of a cluster's pods are not ready: what the others cannot bear spills to other clusters

For each step a table shows who called what, how many calls each cluster answered, how many failed,
and the median time of a call (P50). Below it is what was expected: ✓ if it held, ✗ if not.

Each call is a new connection with a timeout of one second and no retry. No call may fail, with one
exception: in steps 2 and 4, calls may fail during the failover, from the change until it has taken
effect everywhere.

Everything is created in the directory --dir and in separate namespaces. It is removed at the end,
after an error and on Ctrl-C; if something went wrong, the daemons' logs stay in --dir. Must run as
root; takes about two minutes.`

const example = `  strait demo
  strait demo --clusters 5 --nodes 3 --json result.json

  strait demo up                    # only build it, and print commands to try, such as:
  strait demo exec us-east-1/client -- curl -s http://serve.default.svc.clusterset.local
  strait demo down                  # remove it`

// options are the flags of `strait demo`.
type options struct {
	size lab.Size
	dir  string
	keep bool
	json string
}

// Command returns the command `demo` with its subcommands.
func Command() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Run three clusters on this machine and show what strait does, in two minutes",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd, *o, (*scenario).play) },
	}
	c.PersistentFlags().StringVar(&o.dir, "dir", "./.demo", "`directory` of the demo, which is removed with it")
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&o.keep, "keep", false, "leave it up and print commands to try; 'strait demo down' removes it")
	f.StringVar(&o.json, "json", "", "write the result as JSON to `file`")
	o.sizeFlags(c, "; 1 skips some steps")
	c.AddCommand(upCommand(o), downCommand(o), execCommand(o), enterCommand(), serveCommand(), clientCommand())
	return c
}

// sizeFlags adds the flags for the size of the demo.
func (o *options) sizeFlags(c *cobra.Command, about1 string) {
	f := c.Flags()
	f.IntVar(&o.size.Clusters, "clusters", 3, fmt.Sprintf("`number` of clusters, 2 to %d", len(lab.ClusterNames)))
	f.IntVar(&o.size.Nodes, "nodes", 2, fmt.Sprintf("`number` of nodes in each cluster, 1 to %d%s", lab.MaxNodes, about1))
}

func upCommand(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "up",
		Short: "Only build the clusterset, check that it answers, and leave it up",
		Example: `  strait demo up
  strait demo up --clusters 2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own := *o
			own.keep = true
			return run(cmd, own, (*scenario).comeUp)
		},
	}
	c.Flags().SortFlags = false
	o.sizeFlags(c, "")
	return c
}

func downCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove a demo that is up, or what a killed one left behind",
		Example: `  strait demo down
  strait demo down --dir /tmp/demo    # of a demo that was started with this --dir`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errors.New("remove the demo: namespaces and cgroups need root; run `strait demo down` as root")
			}
			l, err := lab.Open(o.dir, nil)
			if errors.Is(err, lab.ErrNone) {
				n, err := lab.RemoveByName(cmd.Context(), o.dir)
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "no demo in %s; removed %d network namespaces of other demos\n", o.dir, n)
				}
				return err
			}
			if err != nil {
				return err
			}
			if err := l.TearDown(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "removed the demo in", o.dir)
			return nil
		},
	}
}

func execCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:                   "exec NODE[/POD] -- COMMAND…",
		DisableFlagsInUseLine: true,
		Short:                 "Run a command on a node of a demo, or in one of its pods (serve, client, far)",
		Example: `  strait demo exec us-east-1/client -- curl -s http://serve.default.svc.clusterset.local
  strait demo exec us-east-1 -- ip route`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := lab.Open(o.dir, nil)
			if errors.Is(err, lab.ErrNone) {
				return fmt.Errorf("%w (%s): start one with `strait demo up`", err, o.dir)
			}
			if err != nil {
				return err
			}
			place, err := l.Find(args[0])
			if err != nil {
				return err
			}
			return l.Become(place, args[1:])
		},
	}
}

// enterCommand is the hidden command by which lab starts a process that needs the node's
// resolv.conf.
func enterCommand() *cobra.Command {
	return &cobra.Command{
		Use: "enter RESOLVCONF COMMAND…", Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return lab.Enter(args[0], args[1:]) },
	}
}

func serveCommand() *cobra.Command {
	var h traffic.Hello
	var addr string
	c := &cobra.Command{
		Use: "serve", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if h.Address, err = netip.ParseAddr(addr); err != nil {
				return fmt.Errorf("--address: %w", err)
			}
			return traffic.Serve(cmd.Context(), h)
		},
	}
	c.Flags().StringVar(&h.Cluster, "cluster", "", "cluster to answer with")
	c.Flags().StringVar(&h.Node, "node", "", "node to answer with")
	c.Flags().StringVar(&h.Pod, "pod", "", "pod to answer with")
	c.Flags().StringVar(&addr, "address", "", "address to listen on and to answer with")
	return c
}

func clientCommand() *cobra.Command {
	return &cobra.Command{
		Use: "client", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGPIPE) // the demo can exit before the last report is written
			return traffic.RunClient(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
}

// binaries are the programs that the demo runs.
type binaries struct{ strait, straitd string }

// findBinaries finds this program, and straitd next to it.
func findBinaries() (binaries, error) {
	self, err := os.Executable()
	if err != nil {
		return binaries{}, fmt.Errorf("find own program: %w", err)
	}
	b := binaries{self, filepath.Join(filepath.Dir(self), "straitd")}
	if _, err := os.Stat(b.straitd); err != nil {
		return b, fmt.Errorf("straitd is not next to %s: build both with `make build`", self)
	}
	return b, nil
}
