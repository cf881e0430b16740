package fleet

import (
	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
)

func rotateCommand(a *cli.App) *cobra.Command {
	var d keyDir
	var t target
	var contexts []string
	var finish, gossip bool
	c := &cobra.Command{
		Use:   "rotate [CLUSTER]",
		Short: "Replace the root key of a cluster, or the gossip key, without a gap",
		Long: `Replace a cluster's root key, or the gossip key of the clusterset. Between the steps both the old
and the new one count, so no Service is away for a moment.

In Kubernetes, name the cluster, and the contexts of all clusters: all pin both roots, the new one
signs all that counts of the cluster, and then all pin that alone. rotate waits after each step
until every daemon has followed. No daemon restarts.

Outside Kubernetes, in three steps:

1. strait clusterset rotate makes the new key, and pins it beside the old one. Copy the pins to all
   machines of this cluster, and accept them in every other cluster.
2. strait clusterset rotate --finish puts the new key in place of the old one. Copy it to the
   machines that have the root, and restart their daemons.
3. strait clusterset rotate --finish, again, on a machine where straitd runs, takes the old key from
   the pins, if it signed for no node that is heard. Copy the pins to all machines of this cluster,
   and accept them in every other cluster.

With --gossip-key, the key that all daemons share is replaced: after an eviction, for the evicted
cluster still has it. First all daemons accept the new key, then all use it, and then the old one
counts nowhere. Daemons follow without a restart. In Kubernetes, name the contexts of all clusters.
Outside Kubernetes, each step is the same command, on one machine: it makes the next step if all
daemons have made the one before, and prints what to copy. To continue an interrupted rotation,
run it again.`,
		Example: `  strait clusterset rotate us-east --context us-east --context us-west
  strait clusterset rotate --finish
  strait clusterset rotate --gossip-key --context us-east --context us-west`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case gossip && (len(args) > 0 || finish):
				return cli.UsageError("--gossip-key is for the whole clusterset: it goes with neither a CLUSTER nor --finish")
			case gossip && len(contexts) > 0:
				return rotateGossipMembers(cmd.Context(), a, t, contexts)
			case gossip:
				return rotateGossipHere(cmd.Context(), a, directory{d, a})
			case len(contexts) > 0 && len(args) == 1 && !finish:
				return rotateMembers(cmd.Context(), a, t, contexts, clustermesh.ClusterName(args[0]))
			case len(contexts) > 0 || len(args) > 0:
				return cli.UsageError("want a CLUSTER with --context of all clusters, or neither and, for the second step, --finish")
			case finish:
				return keysFinish(cmd.Context(), a, directory{d, a})
			}
			return keysRotate(cmd.Context(), a, directory{d, a})
		},
	}
	d.flag(c)
	c.Flags().BoolVar(&gossip, "gossip-key", false, "replace the key that all daemons share")
	c.Flags().BoolVar(&finish, "finish", false, "the second step, and the third")
	c.Flags().StringArrayVar(&contexts, "context", nil, "`name` of a kubeconfig context; give those of all clusters")
	t.flags(c)
	return c
}
