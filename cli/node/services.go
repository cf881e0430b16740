package node

import (
	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

const servicesLong = `List every service of the clusterset: its address, which clusters export it, how many endpoints are
ready, and where new connections from this node go.

READY counts each pod once. A Service with an IPv4 and an IPv6 address has a count for each, unless
they are equal: a pod can answer only at the address of its own family.

NEW CONNECTIONS GO TO names the tier (node, zone, region, cluster, clusterset) with its share, and
the clusters. WHY names the nearer tiers that were passed over.`

func ServicesCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "services",
		Aliases:           []string{"service", "svc"},
		Short:             "List the shared services, and where new connections to them go",
		Long:              servicesLong,
		Example:           "  strait services\n  strait services -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := cli.Ask(cmd.Context(), a, (*client.Client).Services)
			if err != nil {
				return err
			}
			p, done, err := a.Begin(list, list.SeenFrom)
			if done {
				return err
			}
			p.Table(api.Table(list.Items, a.Now()))
			if len(list.Items) == 0 {
				a.Hint("no service is shared yet: create a Service and a ServiceExport of the same name in any cluster")
			}
			return nil
		},
	}
}
