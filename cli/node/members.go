package node

import (
	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

const membersLong = `List the clusters and nodes of the clusterset with how far this node trusts them: which clusters
are pinned, by which roots, and with which key each node signs.

STATE is as in strait status and strait nodes. Besides:
  unheard  the cluster is pinned, and nothing was ever heard of it
  refused  the cluster sends records here, and is not pinned

DISTANCE is the round-trip time of another cluster's node. A cluster shows it if it is not
among the nearest: of clusters that are equally far by their labels, the one that answers faster is
used first.

KEY is the fingerprint of a cluster's root, or of the key with which a node signs. A statement of
its cluster's root certifies the node's key; it is renewed each hour. Nodes that HAS ROOT
shows have that root: they can lead, sign such statements, and speak for the whole cluster.`

func MembersCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "members",
		Short:             "List the clusters and nodes that this node believes, and by which key",
		Long:              membersLong,
		Example:           "  strait members\n  strait members -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := cli.Ask(cmd.Context(), a, (*client.Client).Members)
			if err != nil {
				return err
			}
			p, done, err := a.Begin(list, list.SeenFrom)
			if done {
				return err
			}
			if !list.Pinned() {
				p.Line("%s nothing is pinned: every holder of the gossip key is trusted", api.Warn)
			}
			if text := list.Rekeying(); text != "" {
				p.Line("%s %s", api.Warn, text)
			}
			p.Table(cli.WithoutEmpty(api.Table(list.Items, a.Now())))
			return nil
		},
	}
}
