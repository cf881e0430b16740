package main

import (
	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
)

// tunnelCommand is the body of the userspace WireGuard device, which straitd starts as a process of its
// own so that it outlives straitd; in Kubernetes the DaemonSet strait-tunnel does, for a process does not outlive
// its pod. People have no use for it, so help does not list it.
func tunnelCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "tunnel",
		Short:              "Serve a userspace WireGuard device; started by straitd",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return daemon.RunTunnel(cmd.Context(), args, newLogger(daemon.LogConfig{}))
		},
	}
}
