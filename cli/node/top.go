package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

const topLong = `Show which services are called most now: connections that are open, new and refused ones per
second, bytes, and the clusters that they go to. It counts for --seconds, and then prints once;
with --watch, again and again.

  services  (default) the services that are called
  clusters  the clusters whose backends are called
  nodes     the nodes whose clients call

REFUSED/S are connections that found no backend at all. SENT and RECEIVED are bytes of the clients
over TCP connections that are open. TO is where the new connections went, or where the open ones
are if there was no new one. --sort takes new, refused, open, sent, received or name.

It asks this node; with --context, all nodes of these clusters, and with --node '*', those of this
node's cluster. A support bundle has one count only, and so no rates.`

// topFlags are those of strait top.
type topFlags struct {
	by, order string
	seconds   time.Duration
	watch     bool
	counters  bool
}

// TopCommand is strait top.
func TopCommand(a *cli.App) *cobra.Command {
	var f topFlags
	seconds := 2
	cmd := &cobra.Command{
		Use:   "top [services|clusters|nodes]",
		Short: "Show which services, clusters or nodes have the most connections now",
		Long:  topLong,
		Example: "  strait top\n  strait top clusters --context c1 --context c2\n" +
			"  strait top --sort refused --watch",
		ValidArgs: api.TopBy,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !slices.Contains(api.TopBy, args[0]) {
				return cli.UsageError("top takes one of %s, got %q", strings.Join(api.TopBy, ", "), strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.by = api.TopBy[0]; len(args) > 0 {
				f.by = args[0]
			}
			f.seconds = time.Duration(seconds) * time.Second
			switch {
			case seconds < 1 || seconds > 3600:
				return cli.UsageError("--seconds %d: want 1 to 3600", seconds)
			case !slices.Contains(api.TopOrders, f.order):
				return cli.UsageError("--sort %q: use one of %s", f.order, strings.Join(api.TopOrders, ", "))
			case f.watch && a.From.File != "":
				return cli.UsageError("--watch needs a cluster that runs; a support bundle does not change")
			case f.counters:
				l, err := cli.Ask(cmd.Context(), a, (*client.Client).Traffic)
				if err == nil {
					_, err = a.Data(l)
				}
				return err
			}
			return f.run(cmd.Context(), a)
		},
	}
	cmd.Flags().IntVar(&seconds, "seconds", seconds, "count new connections for this `number` of seconds")
	cmd.Flags().StringVar(&f.order, "sort", api.TopOrders[0], "sort by this `column`")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "keep running, and count again and again")
	// What the daemon answers, for a client that can only run commands beside it.
	cmd.Flags().BoolVar(&f.counters, "counters", false, "print what the daemon counted")
	_ = cmd.Flags().MarkHidden("counters")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(api.TopOrders, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// run counts and prints once, or until ctx ends.
func (f topFlags) run(ctx context.Context, a *cli.App) (err error) {
	live := a.From.File == "" // a bundle has one count only
	var before []*api.TrafficList
	if live {
		if before, _, err = gatherTraffic(ctx, a); err != nil {
			return err
		}
	}
	for {
		if live {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(f.seconds):
			}
		}
		after, nodes, err := gatherTraffic(ctx, a)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		l := api.NewTop(f.by, before, after)
		l.Nodes = nodes
		api.SortTop(l.Items, f.order)
		if err := f.show(a, l); err != nil {
			return err
		}
		if !f.watch {
			return outcomeOf(nodes)
		}
		before = after
	}
}

// clearScreen moves the cursor of a terminal to its top, and clears it.
const clearScreen = "\x1b[H\x1b[2J"

func (f topFlags) show(a *cli.App, l *api.TopList) error {
	if done, err := a.Data(l); done {
		return err
	}
	return a.AtOnce(func(p cli.Printer) {
		if f.watch && a.IsTerminal {
			fmt.Fprint(p.W, clearScreen)
		}
		title := titleOf(l.Nodes)
		if l.Seconds > 0 {
			title += fmt.Sprintf(" · counted for %.1f s", l.Seconds)
		}
		p.Line("%s", title)
		cli.Show(a, p, table.Top(f.by), l.Items)
		notWhole(p, l.Nodes)
	})
}

// askTraffic asks what a node counted so far.
var askTraffic = question[api.TrafficList]{path: "traffic", kind: api.KindTraffic, one: (*client.Client).Traffic,
	from: func(l *api.TrafficList) api.Viewpoint { return l.SeenFrom }}

// gatherTraffic asks the nodes that the flags choose for what they counted so far.
func gatherTraffic(ctx context.Context, a *cli.App) (lists []*api.TrafficList, nodes []api.AskedNode, err error) {
	every, err := a.AsksCluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !every {
		l, err := cli.Ask(ctx, a, (*client.Client).Traffic)
		if err != nil {
			return nil, nil, err
		}
		return []*api.TrafficList{l}, []api.AskedNode{{Cluster: l.SeenFrom.Cluster, Node: l.SeenFrom.Node, Partial: l.Partial}}, nil
	}
	for _, x := range askEach(ctx, a, askTraffic) {
		if x.answer != nil {
			x.Partial = x.answer.Partial
			lists = append(lists, x.answer)
		}
		nodes = append(nodes, x.AskedNode)
	}
	return lists, nodes, nil
}
