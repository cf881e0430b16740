package fleet

import (
	"context"
	"fmt"

	"strait.io/strait/cli"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/vault"
)

// refuseListed returns an error if the members of a cluster come from a repository: a command that
// changes them would have no effect, or the next sync would take it back.
func refuseListed(ctx context.Context, clusters ...*cluster.Cluster) error {
	for _, c := range clusters {
		files, err := c.ListedMembers(ctx)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			return fmt.Errorf("context %s: the ConfigMap %s lists which clusters this one believes (%s); change its files in the repository that it comes from: docs/gitops.md",
				c.Context, cluster.MembersConfigMap, cli.Some(files, 5))
		}
	}
	return nil
}

// notListed is refuseListed for vaults.
func notListed(ctx context.Context, vaults []vault.Vault) error {
	for _, v := range vaults {
		if err := refuseListed(ctx, v.(secret).Cluster); err != nil {
			return err
		}
	}
	return nil
}

// warnKept prints that a tool will put back what this command changes, or could.
func warnKept(ctx context.Context, a *cli.App, c *cluster.Cluster) error {
	by, err := c.AppliedBy(ctx)
	if err != nil {
		return err
	}
	if by != "" {
		a.Printer().Line("! %s: %s applies strait from a repository, and puts back what this command changes; change the values there (docs/gitops.md)", c.Context, by)
		return nil
	}
	listed, err := c.ListedMembers(ctx)
	if len(listed) > 0 {
		a.Printer().Line("! %s: the ConfigMap %s lists which clusters this one believes; if a repository applies the chart, too, change its values there (docs/gitops.md)", c.Context, cluster.MembersConfigMap)
	}
	return err
}
