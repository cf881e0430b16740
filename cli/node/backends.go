package node

import (
	"context"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/l4"
)

const backendsLong = `List the endpoints that new connections from this node can go to: one row per frontend and endpoint.
Below the table is a line for each frontend that refuses connections, or for which the kernel's map
differs. Endpoints that get no connections are not listed: see strait explain.`

func BackendsCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "backends [NAMESPACE/NAME]",
		Aliases:           []string{"backend"},
		Short:             "List the endpoints that new connections from this node can go to",
		Long:              backendsLong,
		Example:           "  strait backends\n  strait backends default/serve -o yaml",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.CompleteService,
		RunE: func(cmd *cobra.Command, args []string) error {
			service, err := cli.OptionalService(args)
			if err != nil {
				return err
			}
			list, err := cli.Ask(cmd.Context(), a, func(c *client.Client, ctx context.Context) (*api.BackendList, error) {
				return c.Backends(ctx, service)
			})
			if err != nil {
				return err
			}
			p, done, err := a.Begin(list, list.SeenFrom)
			if done {
				return err
			}
			p.Table(api.Table(list.Items, a.Now()))
			doubts(p, list)
			return nil
		},
	}
}

// doubts prints a line for each frontend that does not work as the table suggests.
func doubts(p cli.Printer, list *api.BackendList) {
	var last l4.Addr
	for _, b := range list.Items {
		if !b.InKernel && b.Frontend != last {
			p.Line("%s %s %s: the kernel's map differs from the plan (strait status)", api.Bad, b.Service, b.Frontend)
			last = b.Frontend
		}
	}
	for _, r := range list.Refusing {
		p.Line("%s %s %s has no backend: connections are refused (strait explain %s)", api.Bad, r.Service,
			r.Frontend, r.Service)
	}
}
