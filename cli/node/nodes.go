package node

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

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
-o wide and -o json have them all, and the stamp (epoch/version) of each node's record.`

func NodesCommand(a *cli.App) *cobra.Command {
	return cli.List[api.Node, *api.NodeList]{
		Table: table.Nodes, Noun: "node", Parents: true, Sparse: true,
		Ask:   func(c *client.Client, ctx context.Context, _ cli.Names) (*api.NodeList, error) { return c.Nodes(ctx) },
		Items: func(l *api.NodeList) *[]api.Node { return &l.Items },
		From:  func(l *api.NodeList) api.Viewpoint { return l.SeenFrom },
		After: func(p cli.Printer, l *api.NodeList) {
			for _, n := range l.Items {
				if len(n.Witnesses) > 0 {
					p.Line("%s %s/%s is silent according to %s", api.Warn, n.Cluster, n.Name, strings.Join(n.Witnesses, ", "))
				}
			}
		},
	}.Fill(a, &cobra.Command{
		Use:     "nodes [CLUSTER | [CLUSTER/]NODE...]",
		Aliases: []string{"node"},
		Short:   "List the nodes of all clusters, and which of them this node hears",
		Long:    nodesLong,
		Example: "  strait nodes\n  strait nodes us-west -o wide --watch\n  strait nodes revoke n7    # it was stolen",
	})
}
