package node

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/cli/check"
	"strait.io/strait/cli/checklist"
	"strait.io/strait/daemon/api/client"
)

const checkLong = `Check what the daemons know of a clusterset, and list what is fine and what is not: whether every
daemon answers and is ready, the kernels, the data path, who hears whom, the tunnels, and every
problem. What is not fine has the nodes, and what to do.

Without --context it checks this node; with it, all nodes of these clusters.

With --pre it checks before strait is installed. With --context it runs the image on each node of
these clusters for a moment, in a namespace of its own: it looks at the kernels and other programs,
has the nodes send to each other's ports, and asks what you may install. Without a context it checks
this machine, as root.`

// CheckCommand is strait check.
func CheckCommand(a *cli.App, clusters Clusters) *cobra.Command {
	var format string
	var pre bool
	var before cli.Before
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check every node, and list what is fine and what is not",
		Long:  checkLong,
		Example: "  strait check\n  strait check --context c1 --context c2\n" +
			"  strait check --context c1 -o short      # only what is not fine\n  strait check --context c1 -o junit > strait.xml\n  strait check --pre                      # before straitd runs here\n" +
			"  strait check --pre --context c1 --context c2 --image registry.example/strait",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pre {
				return checkBefore(cmd.Context(), a, clusters, before, format)
			}
			if before.Image != "" || len(before.Set)+len(before.Values) > 0 {
				return cli.UsageError("--image, --set and --values go with --pre")
			}
			nodes, err := askForCheck(cmd.Context(), a)
			if err != nil {
				return err
			}
			return checklist.Show(a, check.Run(nodes, a.ThisVersion().Version), format)
		},
	}
	// It shadows the global flag, whose formats are others.
	cmd.Flags().StringVarP(&format, "output", "o", "table", "output `format`: table, "+strings.Join(checklist.Formats, ", "))
	cmd.Flags().BoolVar(&pre, "pre", false, "check this machine, or clusters, before strait is installed")
	cmd.Flags().StringVar(&before.Image, "image", "", "`image` that would run, as in strait install; with --pre")
	cmd.Flags().StringArrayVar(&before.Set, "set", nil, "a chart value, `name=value`, as in strait install; with --pre")
	cmd.Flags().StringArrayVar(&before.Values, "values", nil, "YAML `file` with chart values, as in strait install; with --pre")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(append([]string{"table"}, checklist.Formats...), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// askForCheck asks the nodes that the flags choose.
func askForCheck(ctx context.Context, a *cli.App) (out []check.Node, err error) {
	every, err := a.AsksCluster(ctx)
	if err != nil {
		return nil, err
	}
	if !every {
		s, err := cli.Ask(ctx, a, (*client.Client).Status)
		if err != nil {
			return nil, err
		}
		return []check.Node{{Name: s.Cluster + "/" + s.Node, Cluster: s.Cluster, Status: s}}, nil
	}
	for _, s := range askEvery(ctx, a) {
		out = append(out, check.Node{Name: s.name(), Cluster: s.Cluster, Status: s.Status, Error: s.why(), Try: s.Try})
	}
	return out, nil
}
