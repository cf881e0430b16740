package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/cli/fleet"
	"strait.io/strait/cli/kernel"
	"strait.io/strait/cli/node"
	"strait.io/strait/daemon/api"
)

// env is what the commands see of the outside world. Tests replace it to run commands in process.
type env struct {
	cli.App
	kernel kernel.Kernel
	// proxied reports whether kube-proxy runs on this node.
	proxied func() bool
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, e env) int {
	root := newRoot(e)
	root.SetArgs(e.Args)
	cmd, err := root.ExecuteContextC(ctx)
	return e.Report(ctx, cmd, err)
}

const rootLong = `strait shows what straitd, the daemon on this node, knows and does: which clusters it hears,
which services they share, where new connections go, and why. With a kubeconfig it installs strait
in Kubernetes clusters and joins them.`

const rootExample = `  strait status                   # is all well?
  strait explain default/serve    # where do connections to this service go, and why?`

// The groups of commands, in the order in which help shows them.
const (
	groupNode       = "node"
	groupKernel     = "kernel"
	groupKubernetes = "kubernetes"
	groupOther      = "other"
)

// Help lists commands in the order of AddCommand. Tests run several command lines at the same time, and
// cobra has this for all of them.
func init() { cobra.EnableCommandSorting = false }

func newRoot(e env) *cobra.Command {
	a := &e.App
	root := &cobra.Command{
		Use:           "strait",
		Short:         "See what straitd knows and does on this node",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		// report prints the suggestion itself, in the layout of all errors.
		DisableSuggestions:         true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return a.CheckOutput(cmd) },
	}
	root.Version = a.ThisVersion().Version
	if name, is := strings.CutPrefix(strings.TrimSuffix(a.Program, ".exe"), "kubectl-"); is {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + name}
	}
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&a.Socket, "socket", cmp.Or(e.Getenv("STRAIT_SOCKET"), api.DefaultSocket),
		"straitd socket `path` (env STRAIT_SOCKET)")
	flags.StringVarP(&a.Output, "output", "o", "table", "output `format`: table, wide, name, json, yaml, jsonpath=…")
	flags.BoolVar(&a.NoColor, "no-color", false, "disable colour, even on a terminal (env NO_COLOR)")
	flags.BoolVar(&a.ASCII, "ascii", false, "print ASCII only: ok, warn, FAIL instead of ✓, !, ✗")
	_ = root.RegisterFlagCompletionFunc("output",
		a.CompleteOutput)
	root.Flags().Bool("version", false, "print the version of this program") // cobra looks at it
	nodes := node.NodesCommand(a)
	nodes.AddCommand(fleet.RevokeCommand(a))
	version := node.VersionCommand(a)
	a.AskFlags(version)
	queries := []*cobra.Command{node.StatusCommand(a), node.CheckCommand(a, fleet.CheckBefore), node.ServicesCommand(a), node.ExportsCommand(a), node.ExplainCommand(a),
		node.BackendsCommand(a), node.FlowsCommand(a), node.TopCommand(a), nodes, node.MembersCommand(a), node.TraceCommand(a), node.PolicyCommand(a), node.GraphCommand(a), node.TimelineCommand(a), node.LogsCommand(a), node.PingCommand(a), node.UICommand(a)}
	a.AskFlags(queries...)
	addGroup(root, groupNode, "Ask straitd, on this node or by a kubeconfig:", append(queries, node.PeerCommand(a, e.proxied), node.SupportCommand(a))...)
	addGroup(root, groupKernel, "Read or change this node's kernel maps, as root:", kernel.BPFCommand(a, e.kernel), kernel.OptOutCommand(a, e.kernel))
	addGroup(root, groupKubernetes, "Manage Kubernetes clusters with a kubeconfig:", fleet.InstallCommand(a),
		fleet.ClustersetCommand(a), fleet.ClusterCommand(a), fleet.DNSCommand(a), fleet.ConnectivityCommand(a), fleet.ReplicateCommand(a), fleet.UpgradeCommand(a), fleet.UninstallCommand(a))
	addGroup(root, groupOther, "Other commands:", demoCommand(), version)
	root.AddCommand(fleet.ProbeCommand(a))
	finishBuiltins(root)
	completeContexts(root, a)
	cli.TypeErrors(root)
	return root
}

// completeContexts offers the contexts of the kubeconfig wherever a command takes one.
func completeContexts(c *cobra.Command, a *cli.App) {
	if c.Flags().Lookup("context") != nil {
		_ = c.RegisterFlagCompletionFunc("context", a.CompleteContext)
	}
	for _, below := range c.Commands() {
		completeContexts(below, a)
	}
}

// addGroup adds commands that help lists together, under a title.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// finishBuiltins gives cobra's own commands examples, as ours have, and makes them fail on unknown
// arguments. The help of root ends with the exit codes.
func finishBuiltins(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		help(cmd, args)
		if cmd == root {
			fmt.Fprint(cmd.OutOrStdout(), "\n"+cli.ExitCodes)
		}
	})
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Short = "Show the help of a command"
			c.Long = ""
			c.Example = "  strait help explain\n  strait help bpf slots"
			c.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args) // cobra itself exits with code 0 for an unknown topic
				return err
			}
			explainProblems(c)
		case "completion":
			c.Short = "Print a shell's completion script"
			c.Long = "Print a shell's completion script. The help for each shell says how to load it."
			c.Example = "  strait completion bash > /etc/bash_completion.d/strait\n" +
				"  strait completion fish > ~/.config/fish/completions/strait.fish"
			// Without RunE, cobra prints help for an unknown shell and exits with code 0.
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range c.Commands() {
				line := "  strait completion " + shell.Name()
				shell.Short = "Print the completion script for " + shell.Name()
				shell.Example = line + "\n" + line + " --no-descriptions"
			}
		}
	}
}
