//go:build !linux

package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// demoCommand stands for the demo, which makes network namespaces and starts daemons.
func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "demo",
		Short:              "Run a whole clusterset on one Linux machine",
		Example:            "  strait demo",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			f := needsNode("strait demo", runtime.GOOS)
			f.Try = "run it on a Linux machine, as root"
			return &exitError{exitProblem, f}
		},
	}
}
