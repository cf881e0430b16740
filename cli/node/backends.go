package node

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/internal/l4"
)

const backendsLong = `List the endpoints that new connections from this node can go to: one row per frontend and endpoint.
Below the table is a line for each frontend that refuses connections, or for which the kernel's map
differs. Endpoints that get no connections are not listed: see strait explain.`

func BackendsCommand(a *cli.App) *cobra.Command {
	return cli.List[api.Backend, *api.BackendList]{
		Table: table.Backends, Noun: "service with a backend", Namespaced: true,
		Of: func(b api.Backend) string { return b.Service },
		Known: func(l *api.BackendList) (names []string) {
			for _, r := range l.Refusing {
				names = append(names, r.Service)
			}
			return names
		},
		Ask:   askBackends,
		Items: func(l *api.BackendList) *[]api.Backend { return &l.Items },
		From:  func(l *api.BackendList) api.Viewpoint { return l.SeenFrom },
		After: doubts,
	}.Fill(a, &cobra.Command{
		Use:               "backends [[NAMESPACE/]NAME...]",
		Aliases:           []string{"backend"},
		Short:             "List the endpoints that new connections from this node can go to",
		Long:              backendsLong,
		Example:           "  strait backends\n  strait backends default/serve -o yaml\n  strait backends -n shop --watch",
		ValidArgsFunction: a.CompleteService,
	})
}

// askBackends leaves the services out that are not named. The daemon knows a service that has no
// frontend, so a single one is asked for by its name.
func askBackends(c *client.Client, ctx context.Context, names cli.Names) (*api.BackendList, error) {
	list, err := c.Backends(ctx, names.Only())
	if err != nil {
		return nil, err
	}
	list.Refusing = slices.DeleteFunc(list.Refusing, func(r api.Refusing) bool { return !names.Keep(r.Service) })
	return list, nil
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
