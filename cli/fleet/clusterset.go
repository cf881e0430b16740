// Package fleet has the commands that change clusters: install, upgrade, uninstall, clusterset,
// cluster, dns, connectivity, nodes revoke and replicate.
//
// Inputs are flags, a kubeconfig (package install/cluster) or a directory of keys; outputs are changed
// clusters and files, text and an exit code. It must not know how the daemon decides, or the kernel.
package fleet

import (
	"github.com/spf13/cobra"

	"strait.io/strait/cli"
)

func ClustersetCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "clusterset",
		Short: "Join clusters into a clusterset, and show whether they hear each other",
		Long: `Join Kubernetes clusters into a clusterset, by their contexts: connect, disconnect and status. For
machines outside Kubernetes, by the files in a directory: init, invite, accept, pins, evict and
rotate.`,
		Example: "  strait clusterset connect --context c1 --context c2\n  strait clusterset status --context c1 --context c2",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(connectCommand(a), disconnectCommand(a), clustersetStatusCommand(a),
		initCommand(a), inviteCommand(a), acceptCommand(a), pinsCommand(a),
		evictCommand(a), rotateCommand(a))
	return c
}
