package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
)

// preflightCommand is what strait check --pre runs on a machine before straitd does.
func preflightCommand(o *options) *cobra.Command {
	var root string
	c := preflight("preflight", "Print what this machine has of what straitd needs, as JSON; run by strait check --pre", func(cmd *cobra.Command) error {
		cfg, err := o.preflightConfig()
		if err != nil {
			return err
		}
		return printJSON(cmd, daemon.Preflight(cmd.Context(), cfg, root))
	})
	c.Flags().StringVar(&root, "root", "/", "the machine's file system, a `directory`")
	c.AddCommand(
		preflight("serve", "Answer probes at the ports of straitd, until stdin has a byte or ends", func(cmd *cobra.Command) error {
			cfg, err := o.preflightConfig()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() { // it ends with the process at the latest
				_, _ = io.ReadFull(cmd.InOrStdin(), make([]byte, 1))
				cancel()
			}()
			return daemon.PreflightServe(ctx, cfg)
		}),
		preflight("dial", "Send the probes that stdin has as JSON, and print what came back", func(cmd *cobra.Command) error {
			replies, err := daemon.PreflightDial(cmd.Context(), cmd.InOrStdin())
			if err != nil {
				return err
			}
			return printJSON(cmd, replies)
		}))
	return c
}

// preflight is a command that people never need, so help does not list it.
func preflight(use, short string, do func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return do(cmd) }}
}

func (o *options) preflightConfig() (daemon.Config, error) {
	cfg, err := daemon.PreflightConfig(o.config)
	if err == nil && o.node != "" {
		cfg.Node = o.node
	}
	return cfg, err
}

func printJSON(cmd *cobra.Command, answer any) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(answer)
}
