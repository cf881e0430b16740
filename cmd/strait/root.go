package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// answerTimeout bounds one request to the daemon, which answers from memory in milliseconds.
const answerTimeout = 5 * time.Second

// env is what the commands see of the outside world. Tests replace it to run commands in process.
type env struct {
	args       []string // without the program's name
	stdin      io.Reader
	stdout     io.Writer
	stderr     io.Writer
	getenv     func(string) string
	now        func() time.Time
	isTerminal bool // of stdout
	kernel     kernel
}

// app is one run of the program: its environment and the global flags.
type app struct {
	env
	socket  string
	output  string
	noColor bool
	ascii   bool
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, e env) int {
	root := newRoot(e)
	root.SetArgs(e.args)
	cmd, err := root.ExecuteContextC(ctx)
	return e.report(ctx, cmd, err)
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

func newRoot(e env) *cobra.Command {
	cobra.EnableCommandSorting = false // help lists commands in the order of AddCommand
	a := &app{env: e}
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
		PersistentPreRunE:          func(*cobra.Command, []string) error { return a.checkOutput() },
	}
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&a.socket, "socket", cmp.Or(e.getenv("STRAIT_SOCKET"), api.DefaultSocket),
		"straitd socket `path` (env STRAIT_SOCKET)")
	flags.StringVarP(&a.output, "output", "o", "table", "output `format`: table, json or yaml")
	flags.BoolVar(&a.noColor, "no-color", false, "disable colour, even on a terminal (env NO_COLOR)")
	flags.BoolVar(&a.ascii, "ascii", false, "print ASCII only: ok, warn, FAIL instead of ✓, !, ✗")
	_ = root.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	addGroup(root, groupNode, "Ask straitd on this node:", a.statusCommand(), a.servicesCommand(),
		a.explainCommand(), a.backendsCommand(), a.nodesCommand(), a.membersCommand(), a.policyCommand(), a.graphCommand(), a.peerCommand())
	addGroup(root, groupKernel, "Read or change this node's kernel maps, as root:", a.bpfCommand(), a.optOutCommand())
	addGroup(root, groupKubernetes, "Manage Kubernetes clusters with a kubeconfig:", a.installCommand(),
		a.clustersetCommand(), a.clusterCommand(), a.dnsCommand(), a.replicateCommand(), a.upgradeCommand(), a.uninstallCommand())
	addGroup(root, groupOther, "Other commands:", demoCommand(), a.versionCommand())
	finishBuiltins(root)
	typeErrors(root)
	return root
}

// addGroup adds commands that help lists together, under a title.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

func (a *app) checkOutput() error {
	switch a.output {
	case "table", "json", "yaml":
		return nil
	}
	return usageError("unknown --output %q; use table, json or yaml", a.output)
}

// finishBuiltins gives cobra's own commands examples, as ours have, and makes them fail on unknown
// arguments. The help of root ends with the exit codes.
func finishBuiltins(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		help(cmd, args)
		if cmd == root {
			fmt.Fprint(cmd.OutOrStdout(), "\n"+exitCodes)
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

// ask sends one request to the daemon, with a deadline.
func ask[T any](ctx context.Context, a *app, question func(*client.Client, context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return question(client.OnSocket(a.socket), ctx)
}
