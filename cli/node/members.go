package node

import (
	"context"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
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
	return cli.List[api.Member, *api.MemberList]{
		Table: table.Members, Noun: "member", Parents: true, Sparse: true,
		Ask: func(c *client.Client, ctx context.Context, _ cli.Names) (*api.MemberList, error) {
			return c.Members(ctx)
		},
		Items:   func(l *api.MemberList) *[]api.Member { return &l.Items },
		From:    func(l *api.MemberList) api.Viewpoint { return l.SeenFrom },
		Notices: trusted,
	}.Fill(a, &cobra.Command{
		Use:     "members [CLUSTER | [CLUSTER/]NODE...]",
		Short:   "List the clusters and nodes that this node believes, and by which key",
		Long:    membersLong,
		Example: "  strait members\n  strait members us-west -o wide",
	})
}

// trusted warns of what the table does not show.
func trusted(l *api.MemberList) (lines []string) {
	if !l.Pinned() {
		lines = append(lines, api.Warn+" nothing is pinned: every holder of the gossip key is trusted")
	}
	if text := l.Rekeying(); text != "" {
		lines = append(lines, api.Warn+" "+text)
	}
	return lines
}
