package fleet

import (
	"github.com/spf13/cobra"

	"strait.io/strait/cli"
)

func UpgradeCommand(a *cli.App) *cobra.Command {
	var f installFlags
	var check bool
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrade strait in a Kubernetes cluster, or change its values",
		Long: `Upgrade strait in the cluster of a context to this program's version, and change the values that are
given. Other values stay as install or an earlier upgrade set them, including an image's tag. Nodes
are upgraded one after another, and no connection breaks. Pods that serve a userspace tunnel are not
replaced; upgrade says how to replace them.

With --check it changes nothing. It lists what it would change, and checks whether the versions of
this cluster and of the others work together, whether values and objects are accepted, and whether
the cluster is well before the upgrade. The exit code is 1 if something is in the way.`,
		Example: `  strait upgrade --context c1 --check
  strait upgrade --context c1
  strait upgrade --context c1 --set log.level=debug`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return checkUpgrade(cmd.Context(), a, f)
			}
			return install(cmd.Context(), a, f, true)
		},
	}
	f.declare(c)
	c.Flags().BoolVar(&check, "check", false, "list what would change and what is at risk, and change nothing")
	c.Flags().BoolVar(&f.reset, "reset-values", false, "discard the values that earlier commands set")
	return c
}
