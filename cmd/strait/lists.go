package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/l4"
)

const servicesLong = `List every service of the clusterset: its address, which clusters export it, how many endpoints are
ready, and where new connections from this node go.

READY counts each pod once. A Service with an IPv4 and an IPv6 address has a count for each, unless
they are equal: a pod can answer only at the address of its own family.

NEW CONNECTIONS GO TO names the tier (node, zone, region, cluster, clusterset) with its share, and
the clusters. WHY names the nearer tiers that were passed over.`

func (a *app) servicesCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "services",
		Aliases:           []string{"service", "svc"},
		Short:             "List the shared services, and where new connections to them go",
		Long:              servicesLong,
		Example:           "  strait services\n  strait services -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd.Context(), a, (*client.Client).Services)
			if err != nil {
				return err
			}
			p, done, err := a.begin(list, list.SeenFrom)
			if done {
				return err
			}
			p.table(api.Table(list.Items, a.now()))
			if len(list.Items) == 0 {
				a.hint("no service is shared yet: create a Service and a ServiceExport of the same name in any cluster")
			}
			return nil
		},
	}
}

const backendsLong = `List the endpoints that new connections from this node can go to: one row per frontend and endpoint.
Below the table is a line for each frontend that refuses connections, or for which the kernel's map
differs. Endpoints that get no connections are not listed: see strait explain.`

func (a *app) backendsCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "backends [NAMESPACE/NAME]",
		Aliases:           []string{"backend"},
		Short:             "List the endpoints that new connections from this node can go to",
		Long:              backendsLong,
		Example:           "  strait backends\n  strait backends default/serve -o yaml",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeService,
		RunE: func(cmd *cobra.Command, args []string) error {
			service, err := optionalService(args)
			if err != nil {
				return err
			}
			list, err := ask(cmd.Context(), a, func(c *client.Client, ctx context.Context) (*api.BackendList, error) {
				return c.Backends(ctx, service)
			})
			if err != nil {
				return err
			}
			p, done, err := a.begin(list, list.SeenFrom)
			if done {
				return err
			}
			p.table(api.Table(list.Items, a.now()))
			p.doubts(list)
			return nil
		},
	}
}

// doubts prints a line for each frontend that does not work as the table suggests.
func (p printer) doubts(list *api.BackendList) {
	var last l4.Addr
	for _, b := range list.Items {
		if !b.InKernel && b.Frontend != last {
			p.line("%s %s %s: the kernel's map differs from the plan (strait status)", api.Bad, b.Service, b.Frontend)
			last = b.Frontend
		}
	}
	for _, r := range list.Refusing {
		p.line("%s %s %s has no backend: connections are refused (strait explain %s)", api.Bad, r.Service,
			r.Frontend, r.Service)
	}
}

const nodesLong = `List every node of the clusterset as this node knows it. CONTACT is what gossip knows of a node:

  self    this node
  alive   its daemon is heard
  quiet   its daemon is down but its machine answers; its pods stay in use
  silent  neither its daemon nor its machine answers; kept as last known
  held    not heard; kept as last known
  dead    its own cluster says so; its endpoints are withdrawn

PODS is the range of its pods, and says "entry" if other clusters call ClusterIPs through the node.
The tunnel columns are for nodes of other clusters, while the mesh is on. TUNNEL is just a port if
the tunnel goes to ADDRESS. Long texts are cut, and only the first of several addresses is shown.
-o json has them all, and the stamp (epoch/version) of each node's record.`

func (a *app) nodesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:               "nodes",
		Aliases:           []string{"node"},
		Short:             "List the nodes of all clusters, and which of them this node hears",
		Long:              nodesLong,
		Example:           "  strait nodes\n  strait nodes -o json\n  strait nodes revoke n7    # it was stolen",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd.Context(), a, (*client.Client).Nodes)
			if err != nil {
				return err
			}
			p, done, err := a.begin(list, list.SeenFrom)
			if done {
				return err
			}
			p.table(withoutEmpty(api.Table(list.Items, a.now())))
			for _, n := range list.Items {
				if len(n.Witnesses) > 0 {
					p.line("%s %s/%s is silent according to %s", api.Warn, n.Cluster, n.Name, strings.Join(n.Witnesses, ", "))
				}
			}
			return nil
		},
	}
	c.AddCommand(a.nodeRevokeCommand())
	return c
}

// begin prints an answer as data, and is done, if -o asks for that. Otherwise it prints the header
// of a table, and returns the printer for what follows.
func (a *app) begin(answer any, from api.Viewpoint) (p printer, done bool, err error) {
	if done, err = a.data(answer); done {
		return p, done, err
	}
	p = a.printer()
	a.header(p, from, "")
	return p, false, nil
}

// hint prints a line to stderr: stdout holds results only.
func (a *app) hint(format string, args ...any) {
	fmt.Fprintf(a.stderr, format+"\n", args...)
}
