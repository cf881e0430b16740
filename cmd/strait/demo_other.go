//go:build !linux

package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
)

// demoCommand stands for the demo, which makes network namespaces and starts daemons.
func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "demo",
		Short:              "Run a whole clusterset on one Linux machine",
		Example:            "  strait demo",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			f := cli.NeedsNode("strait demo", runtime.GOOS)
			f.Try = "run it on a Linux machine, as root"
			return cli.Exit(cli.ExitProblem, f)
		},
	}
}
