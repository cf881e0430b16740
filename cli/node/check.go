package node

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/cli/check"
	"strait.io/strait/daemon/api"
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

// checkFormats are the values of --output besides table.
var checkFormats = []string{"json", "yaml", "short", "junit"}

// checkList is the data of strait check.
type checkList struct {
	api.Meta
	Items []check.Check `json:"items"`
}

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
			return showChecks(a, check.Run(nodes, a.ThisVersion().Version), format)
		},
	}
	// It shadows the global flag, whose formats are others.
	cmd.Flags().StringVarP(&format, "output", "o", "table", "output `format`: table, "+strings.Join(checkFormats, ", "))
	cmd.Flags().BoolVar(&pre, "pre", false, "check this machine, or clusters, before strait is installed")
	cmd.Flags().StringVar(&before.Image, "image", "", "`image` that would run, as in strait install; with --pre")
	cmd.Flags().StringArrayVar(&before.Set, "set", nil, "a chart value, `name=value`, as in strait install; with --pre")
	cmd.Flags().StringArrayVar(&before.Values, "values", nil, "YAML `file` with chart values, as in strait install; with --pre")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(append([]string{"table"}, checkFormats...), cobra.ShellCompDirectiveNoFileComp))
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

// showChecks prints the checks. If one failed, or could not be made, its error has the exit code
// and no text.
func showChecks(a *cli.App, checks []check.Check, format string) error {
	var err error
	switch format {
	case "table", "short":
		printChecks(a.Printer(), checks, format == "short")
	case "junit":
		err = writeJUnit(a, checks)
	case "json", "yaml":
		one := *a
		one.Output = format
		_, err = one.Data(checkList{api.Meta{APIVersion: api.APIVersion, Kind: "CheckList"}, checks})
	default:
		return cli.UsageError("unknown --output %q; use table, %s", format, strings.Join(checkFormats, ", "))
	}
	if err != nil {
		return err
	}
	switch check.Worst(checks) {
	case check.Failed:
		return cli.Exit(cli.ExitProblem, nil)
	case check.Unknown:
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}

var glyphs = map[check.State]string{check.OK: api.OK, check.Warning: api.Warn, check.Unknown: api.Bad, check.Failed: api.Bad}

func printChecks(p cli.Printer, checks []check.Check, short bool) {
	count := map[check.State]int{}
	category := ""
	for _, c := range checks {
		count[c.State]++
		if short && c.State == check.OK {
			continue
		}
		if c.Category != category {
			category = c.Category
			p.Line("%s", category)
		}
		p.Line("%s %s", glyphs[c.State], c.Title)
		for _, f := range c.Findings {
			p.Line("    %s%s", strings.TrimPrefix(string(f.Code)+" ", " "), f.Message)
			if len(f.Nodes) > 0 {
				p.Line("      on   %s", cli.Some(f.Nodes, mostNamed))
			}
			if f.Try != "" {
				p.Line("      try  %s", f.Try)
			}
		}
	}
	failed := count[check.Failed] + count[check.Unknown]
	p.Line("%s: %d fine, %d not fine, %s", api.Count(len(checks), "check"), count[check.OK], failed, api.Count(count[check.Warning], "warning"))
}

func writeJUnit(a *cli.App, checks []check.Check) error {
	var cases []cli.JUnitCase
	for _, c := range checks {
		one := cli.JUnitCase{Class: c.Category, Name: c.Title, Text: findingsText(c.Findings)}
		switch c.State {
		case check.Failed:
			one.Failure = c.Findings[0].Message
		case check.Unknown:
			one.Error = c.Findings[0].Message
		}
		cases = append(cases, one)
	}
	return cli.WriteJUnit(a.Stdout, "strait check", cases)
}

func findingsText(all []check.Finding) string {
	var lines []string
	for _, f := range all {
		line := strings.TrimPrefix(string(f.Code)+" ", " ") + f.Message
		if len(f.Nodes) > 0 {
			line += " (on " + strings.Join(f.Nodes, ", ") + ")"
		}
		if f.Try != "" {
			line += "; " + f.Try
		}
		lines = append(lines, cli.Clean(line))
	}
	return strings.Join(lines, "\n")
}
