package node

import (
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
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
-o json has them all, and the stamp (epoch/version) of each node's record.`

func NodesCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "nodes",
		Aliases:           []string{"node"},
		Short:             "List the nodes of all clusters, and which of them this node hears",
		Long:              nodesLong,
		Example:           "  strait nodes\n  strait nodes -o json\n  strait nodes revoke n7    # it was stolen",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := cli.Ask(cmd.Context(), a, (*client.Client).Nodes)
			if err != nil {
				return err
			}
			p, done, err := a.Begin(list, list.SeenFrom)
			if done {
				return err
			}
			p.Table(cli.WithoutEmpty(api.Table(list.Items, a.Now())))
			for _, n := range list.Items {
				if len(n.Witnesses) > 0 {
					p.Line("%s %s/%s is silent according to %s", api.Warn, n.Cluster, n.Name, strings.Join(n.Witnesses, ", "))
				}
			}
			return nil
		},
	}
}
