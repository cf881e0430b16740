package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
)

func cleanupCommand(o *options) *cobra.Command {
	var state, hold bool
	c := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what straitd set up in this node's kernel",
		Long: `Remove the hooks, pins, tunnel, routes and nft table that straitd set up on this node. Keys and
state on disk stay, unless --state is given.`,
		Example: `  straitd cleanup
  straitd cleanup --state    # also forget keys and what other clusters said`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if hold {
				<-cmd.Context().Done()
				return nil
			}
			cfg, err := o.read()
			if err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return errors.New("cleanup must run as root; try sudo")
			}
			if err := daemon.CleanUp(cfg); err != nil || !state {
				return err
			}
			return daemon.RemoveState(cfg)
		},
	}
	c.Flags().BoolVar(&state, "state", false, "remove keys and state on disk as well")
	// The cleanup pod does this when its work is done: pods of a DaemonSet must not exit.
	c.Flags().BoolVar(&hold, "hold", false, "do nothing until stopped")
	_ = c.Flags().MarkHidden("hold")
	return c
}

// mountCommand is for an init container on hosts without systemd; systemd mounts a bpffs itself.
func mountCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "mount-bpffs DIR",
		Short:  "Mount a bpffs on a directory, unless one is mounted there",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(_ *cobra.Command, args []string) error { return daemon.MountBPFFS(args[0]) },
	}
}
