package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
)

// preflightCommand is what strait check --pre runs on a machine before straitd does.
func preflightCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:    "preflight",
		Short:  "Print what this machine has of what straitd needs, as JSON; run by strait check --pre",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := daemon.PreflightConfig(o.config)
			if err != nil {
				return err
			}
			if o.node != "" {
				cfg.Node = o.node
			}
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(daemon.Preflight(cmd.Context(), cfg))
		},
	}
}
