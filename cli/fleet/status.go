package fleet

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/install/cluster"
)

func clustersetStatusCommand(a *cli.App) *cobra.Command {
	var t target
	var contexts []string
	c := &cobra.Command{
		Use:               "status [CONTEXT...]",
		Short:             "Show which clusters are joined, and whether they hear each other",
		Long:              "Show which clusters each context's cluster is joined to, and whether every two have a handshake.",
		Example:           "  strait clusterset status    # of the current context's cluster\n  strait clusterset status c1 c2",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && !cmd.Flags().Changed("context") {
				contexts = nil // not the current one
			}
			m, err := openMembers(cmd.Context(), a, t, append(contexts, args...))
			if err != nil {
				return unknown(err)
			}
			for i, v := range m.views {
				joined := "none yet"
				listed, err := m.clusters[i].ListedMembers(cmd.Context())
				if err != nil {
					return unknown(err)
				}
				if len(listed) > 0 {
					joined = "those in the ConfigMap " + cluster.MembersConfigMap + ": " + strings.Join(listed, ", ")
				} else if v.Have != nil {
					joined = strings.Join(v.Have.Members(), ", ") + "; gossip key " + v.Have.GossipKey.Fingerprint()
				}
				a.Printer().Line("%s: cluster %s; joined: %s", m.clusters[i].Context, v.Cluster.ID, joined)
			}
			pairs, err := m.pairs(cmd.Context())
			printPairs(a, pairs)
			if err == nil && slices.ContainsFunc(pairs, func(x cluster.Pair) bool { return !x.OK }) {
				return cli.Exit(cli.ExitProblem, nil)
			}
			return unknown(err)
		},
	}
	c.Flags().StringArrayVar(&contexts, "context", []string{""}, "`name` of a kubeconfig context; repeatable (default: the current one)")
	t.flags(c)
	return c
}
