package fleet

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/vault"
)

// evictMembers removes a cluster from the pins of the clusters of some contexts.
func evictMembers(ctx context.Context, a *cli.App, t target, contexts []string, id clustermesh.ClusterName, yes bool) error {
	vaults, err := secrets(t, contexts)
	if err != nil {
		return err
	}
	if err := notListed(ctx, vaults); err != nil {
		return err
	}
	changed, keys, err := evict(ctx, a, vaults, id, yes)
	if err != nil || len(changed) == 0 {
		return err
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	if err := followed(ctx, changed, func(i int) authority.Pins { return keys[i].Pins }); err != nil {
		return err
	}
	for _, v := range changed {
		a.Printer().Line("%s: cluster %s is evicted, and every daemon has followed", contextOf(v), id)
	}
	return nil
}

// keysEvict removes a cluster from the pins in a directory.
func keysEvict(ctx context.Context, a *cli.App, d directory, id clustermesh.ClusterName, yes bool) error {
	keys, err := d.ReadKeys(ctx)
	if err != nil {
		return err
	}
	if _, pinned := keys.Pins[id]; !pinned {
		return cli.UsageError("no cluster %s is pinned in %s", id, d.pins())
	}
	if _, _, err := evict(ctx, a, []vault.Vault{d}, id, yes); err != nil {
		return err
	}
	a.Printer().Line("evicted from %s; daemons that read it follow within seconds", d.pins())
	return nil
}

// evict asks, and removes a cluster from the pins of vaults. It returns those that pinned it, with
// their new keys.
func evict(ctx context.Context, a *cli.App, vaults []vault.Vault, id clustermesh.ClusterName, yes bool) (changed []vault.Vault, keys []vault.Keys, err error) {
	for _, v := range vaults {
		k, err := v.ReadKeys(ctx)
		if err == nil && k.Pins == nil {
			err = pinsNothing(v)
		}
		if err != nil {
			return nil, nil, asUsage(err)
		}
		without, pinned, err := k.Evict(id)
		if err != nil {
			return nil, nil, asUsage(fmt.Errorf("%s: %w", v, err))
		}
		if !pinned {
			a.Printer().Line("%s: cluster %s is not pinned", contextOf(v), id)
			continue
		}
		showPins(a, authority.Pins{id: k.Pins[id]})
		changed, keys = append(changed, v), append(keys, without)
	}
	if len(changed) == 0 {
		return nil, nil, nil
	}
	if err := a.Confirm("Evict this cluster?", yes); err != nil {
		return nil, nil, err
	}
	for i, v := range changed {
		if err := v.WriteKeys(ctx, keys[i]); err != nil {
			return nil, nil, err
		}
	}
	return changed, keys, nil
}

func evictCommand(a *cli.App) *cobra.Command {
	var d keyDir
	var t target
	var contexts []string
	var yes bool
	c := &cobra.Command{
		Use:     "evict CLUSTER",
		Aliases: []string{"forget"},
		Short:   "Stop trusting a cluster",
		Long: `Remove a cluster from the pins of another, whether it is hostile, down, or gone for good. Daemons
that read the changed pins drop its records and its tunnels, within seconds and without a restart.
The evicted cluster still has the gossip key, with which it sees who is a member: replace that with
strait clusterset rotate --gossip-key.

In Kubernetes, name the contexts of the clusters that shall stop trusting it: the pin goes from
their ConfigMap strait-pins, and evict returns when every daemon has followed.

Outside Kubernetes, copy the changed pins to all machines of this cluster, and do the same in every
other cluster.`,
		Example: `  strait clusterset evict us-west --context us-east --context eu-central
  strait clusterset evict rack2 --yes --dir /root/keys`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(contexts) > 0 {
				return evictMembers(cmd.Context(), a, t, contexts, clustermesh.ClusterName(args[0]), yes)
			}
			return keysEvict(cmd.Context(), a, directory{d, a}, clustermesh.ClusterName(args[0]), yes)
		},
	}
	d.flag(c)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().StringArrayVar(&contexts, "context", nil, "`name` of a kubeconfig context whose cluster evicts; repeatable")
	t.flags(c)
	return c
}
