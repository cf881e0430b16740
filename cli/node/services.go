package node

import (
	"context"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

const servicesLong = `List every service of the clusterset: its address, which clusters export it, how many endpoints are
ready, and where new connections from this node go.

READY counts each pod once. A Service with an IPv4 and an IPv6 address has a count for each, unless
they are equal: a pod can answer only at the address of its own family.

NEW CONNECTIONS GO TO names the tier (node, zone, region, cluster, clusterset) with its share, and
the clusters. WHY names the nearer tiers that were passed over.`

func ServicesCommand(a *cli.App) *cobra.Command {
	return cli.List[api.Service, *api.ServiceList]{
		Table: table.Services, Noun: "service", Namespaced: true,
		Ask: func(c *client.Client, ctx context.Context, _ cli.Names) (*api.ServiceList, error) {
			return c.Services(ctx)
		},
		Items: func(l *api.ServiceList) *[]api.Service { return &l.Items },
		From:  func(l *api.ServiceList) api.Viewpoint { return l.SeenFrom },
		Empty: "no service is shared yet: create a Service and a ServiceExport of the same name in any cluster",
	}.Fill(a, &cobra.Command{
		Use:               "services [[NAMESPACE/]NAME...]",
		Aliases:           []string{"service", "svc"},
		Short:             "List the shared services, and where new connections to them go",
		Long:              servicesLong,
		Example:           "  strait services\n  strait services -n shop -o wide\n  strait services shop/cart --watch",
		ValidArgsFunction: a.CompleteService,
	})
}
