package fleet

import (
	"context"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
)

func undrainCommand(a *cli.App) *cobra.Command {
	var d drainable
	c := &cobra.Command{
		Use:   "undrain CLUSTER",
		Short: "Use the endpoints of a cluster again",
		Long:  "Use the endpoints of a drained cluster again. Traffic returns by the ramp (locality.ramp).",
		Example: `  strait cluster undrain us-east --context us-east
  strait cluster undrain rack2 --manifest /etc/strait/manifests`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.at(cmd.Context(), a, func(ctx context.Context, place drainPlace) error { return undrain(ctx, a, place, args[0]) })
		},
	}
	d.flag(c)
	return c
}
