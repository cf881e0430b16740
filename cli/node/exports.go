package node

import (
	"context"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

const exportsLong = `List what each cluster exports: one row for each cluster that exports a Service of a name.

READY counts the endpoints of that cluster, each pod once. SHARE is which part of new connections
from this node goes to the cluster; if ports differ, the largest. STATE is what is wrong with the
export: in other clusters, as far as this node knows. An export of this cluster that is not in force
is listed with the reason. A Service can also be shared by a policy: see strait policy.`

func ExportsCommand(a *cli.App) *cobra.Command {
	return cli.List[api.Export, *api.ExportList]{
		Table: table.Exports, Noun: "export", Namespaced: true,
		Ask: func(c *client.Client, ctx context.Context, _ cli.Names) (*api.ExportList, error) {
			services, err := c.Services(ctx)
			if err != nil {
				return nil, err
			}
			status, err := c.Status(ctx)
			if err != nil {
				return nil, err
			}
			return api.NewExportList(services, status.Problems), nil
		},
		Items: func(l *api.ExportList) *[]api.Export { return &l.Items },
		From:  func(l *api.ExportList) api.Viewpoint { return l.SeenFrom },
		Empty: "nothing is exported: create a ServiceExport with the name of a Service in any cluster",
	}.Fill(a, &cobra.Command{
		Use:               "exports [[NAMESPACE/]NAME...]",
		Aliases:           []string{"export"},
		Short:             "List what each cluster exports, and what is wrong with it",
		Long:              exportsLong,
		Example:           "  strait exports\n  strait exports -n shop --watch",
		ValidArgsFunction: a.CompleteService,
	})
}
