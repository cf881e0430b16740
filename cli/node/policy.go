package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

const policyLong = `List this cluster's policies, or show one: which Services of this cluster it selects and shares,
which Services other clusters share under a policy of the same name, what was made of them, and
what is left out, and why: here, and in other clusters as far as their leaders publish it.

A policy is a ServicePolicy, or a MultiClusterService of Karmada, which is listed as NAMESPACE/NAME.
One that has a mistake shares nothing, and is not listed: strait status names the mistake.
The status of a ServicePolicy, which its cluster's leader writes, counts and lists the same.

SELECTED counts this cluster's own Services that the policy is about, SHARED those that other
clusters may use. FROM OTHERS counts the Services of other clusters that this one may use by it, and
MADE what it has of them: mirrors, imports, or own Services that reach their pods too. SKIPPED
counts what is left out of either.`

func PolicyCommand(a *cli.App) *cobra.Command {
	cmd := cli.List[api.Policy, *api.PolicyList]{
		Table: table.Policies, Noun: "policy",
		Ask: func(c *client.Client, ctx context.Context, _ cli.Names) (*api.PolicyList, error) {
			return c.Policies(ctx)
		},
		Items: func(l *api.PolicyList) *[]api.Policy { return &l.Items },
		From:  func(l *api.PolicyList) api.Viewpoint { return l.SeenFrom },
		Empty: "there is no policy: a ServicePolicy shares many Services at once; see docs/services.md",
	}.Fill(a, &cobra.Command{
		Use:     "policy [NAME...]",
		Aliases: []string{"policies"},
		Short:   "List the policies that share Services, and what each shares and leaves out",
		Long:    policyLong,
		Example: "  strait policy\n  strait policy stars\n  strait policy -o json",
	})
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if watched := cmd.Flags().Changed("watch"); len(args) != 1 || watched || a.Output == "name" {
			return list(cmd, args)
		}
		all, err := cli.Ask(cmd.Context(), a, (*client.Client).Policies)
		if err != nil {
			return err
		}
		return onePolicy(a, all, args[0])
	}
	return cmd
}

func onePolicy(a *cli.App, list *api.PolicyList, name string) error {
	policy, ok := list.Named(name)
	if !ok {
		return cli.Exit(cli.ExitProblem, &api.Failure{
			Reason: api.NotFound, Message: fmt.Sprintf("cluster %s has no policy %q in force", list.SeenFrom.Cluster, name),
			Try: "run strait policy for those that it has, and strait status for those with a mistake",
		})
	}
	one := *list
	one.Items = []api.Policy{policy}
	p, done, err := a.Begin(&one, list.SeenFrom)
	if done {
		return err
	}
	cli.Show(a, p, table.Policies, one.Items)
	if len(policy.Others) > 0 {
		p.Line("from others: %s", strings.Join(policy.Others, ", "))
	}
	leftOut(p, "", policy.Skipped, policy.SkippedMore)
	for _, e := range policy.Elsewhere {
		p.Line("cluster %s has made %d by it", e.Cluster, e.Mirrored+e.Imported)
		leftOut(p, " of cluster "+e.Cluster, e.Skipped, e.SkippedMore)
	}
	return nil
}

// leftOut lists the Services that a policy leaves out of a cluster.
func leftOut(p cli.Printer, of string, skipped []api.SkippedService, more int) {
	for _, s := range skipped {
		p.Line("%s %s is left out%s: %s: %s", api.Warn, s.Service, of, s.Reason, s.Message)
	}
	if more > 0 {
		p.Line("%s %d more are left out%s", api.Warn, more, of)
	}
}
