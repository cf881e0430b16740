package main

import (
	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
)

// tunnelCommand serves the userspace WireGuard device. straitd starts it as a separate process, so
// that it outlives straitd. In Kubernetes the DaemonSet strait-tunnel starts it, because a process
// does not outlive its pod. Users never need it, so help does not list it.
func tunnelCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "tunnel",
		Short:              "Serve a userspace WireGuard device; started by straitd",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "--check" { // a probe's
				return daemon.CheckTunnel(args[1:])
			}
			return daemon.RunTunnel(cmd.Context(), args, newLogger(daemon.LogConfig{}))
		},
	}
}
