package fleet

import (
	"github.com/spf13/cobra"

	"strait.io/strait/cli"
)

func ClusterCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Take a cluster out of use, and back",
		Long:  "Take all endpoints of a cluster out of use in the whole clusterset, and back.",
		Example: `  strait cluster drain us-east --dry-run
  strait cluster status us-east
  strait cluster undrain us-east`,
	}
	c.AddCommand(drainCommand(a), remainingCommand(a), undrainCommand(a))
	return c
}
