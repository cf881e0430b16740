package main

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
)

// answerTimeout bounds one request to the daemon, which answers from memory in milliseconds.
const answerTimeout = 5 * time.Second

// env is what the commands see of the outside world. Tests replace it to run commands in process.
type env struct {
	args       []string // without the program's name
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
which services they share, where new connections go, and why. With a kubeconfig it installs strait in
Kubernetes clusters and joins them: install, clusterset connect, dns setup.

Exit codes: 0 fine (warnings allowed), 1 something is wrong or missing, 2 usage error,
3 could not find out, 4 --wait ran out, 130 interrupted.`

const rootExample = `  strait status                   # is all well?
  strait services                 # what is shared, and where do connections go?
  strait explain default/serve    # why do they go there?
  strait status --wait -o json    # for scripts: wait, then print JSON
  strait install --context c1 --cluster us-east    # into a Kubernetes cluster`

func newRoot(e env) *cobra.Command {
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
		"`path` of straitd's unix socket (env STRAIT_SOCKET)")
	flags.StringVarP(&a.output, "output", "o", "table", "output `format`: table, json or yaml")
	flags.BoolVar(&a.noColor, "no-color", false, "disable colour, even on a terminal (env NO_COLOR)")
	flags.BoolVar(&a.ascii, "ascii", false, "print ASCII only: ok, warn, FAIL instead of ✓, !, ✗")
	_ = root.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(a.statusCommand(), a.servicesCommand(), a.backendsCommand(), a.nodesCommand(),
		a.explainCommand(), a.bpfCommand(), a.optOutCommand(), a.versionCommand(),
		a.installCommand(), a.upgradeCommand(), a.uninstallCommand(), a.clustersetCommand(), a.dnsCommand())
	addDemo(root)
	finishBuiltins(root)
	typeErrors(root)
	return root
}

func (a *app) checkOutput() error {
	switch a.output {
	case "table", "json", "yaml":
		return nil
	}
	return usageError("unknown --output %q; use table, json or yaml", a.output)
}

// finishBuiltins gives cobra's own commands an example each, as ours have, and makes them fail on
// unknown arguments.
func finishBuiltins(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Short = "Help about any command"
			c.Example = "  strait help explain"
			c.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args) // cobra itself exits with code 0 for an unknown topic
				return err
			}
		case "completion":
			c.Short = "Print a shell's completion script"
			c.Example = "  strait completion bash > /etc/bash_completion.d/strait\n  strait completion zsh"
			// Without RunE, cobra prints help for an unknown shell and exits with code 0.
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range c.Commands() {
				shell.Example = "  strait completion " + shell.Name()
			}
		}
	}
}

// ask sends one request to the daemon, with a deadline.
func ask[T any](ctx context.Context, a *app, question func(*api.Client, context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return question(api.NewClient(a.socket), ctx)
}
