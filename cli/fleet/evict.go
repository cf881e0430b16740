package fleet

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/cluster"
)

// evictMembers removes a cluster from the pins of the clusters of some contexts.
func evictMembers(ctx context.Context, a *cli.App, t target, contexts []string, id clustermesh.ClusterName, yes bool) error {
	var clusters []*cluster.Cluster
	var all []authority.Pins
	var keys []cluster.Keys
	for _, name := range contexts {
		c, err := t.open(name)
		if err != nil {
			return err
		}
		k, err := c.ReadKeys(ctx)
		if err != nil {
			return err
		}
		_, pins, err := readKeys(k)
		own, idErr := c.ID(ctx)
		switch pin, pinned := pins[id]; {
		case err != nil || idErr != nil:
			return errors.Join(err, idErr)
		case own == string(id):
			return cli.UsageError("context %s is cluster %s itself; evict it in the others", c.Context, id)
		case pins == nil:
			return cli.UsageError("context %s pins nothing; every holder of the gossip key is trusted: strait clusterset connect pins", c.Context)
		case !pinned:
			a.Printer().Line("%s: cluster %s is not pinned", c.Context, id)
			continue
		default:
			showPins(a, authority.Pins{id: pin})
		}
		delete(pins, id)
		clusters, all, keys = append(clusters, c), append(all, pins), append(keys, k)
	}
	if len(clusters) == 0 {
		return nil
	}
	if err := a.Confirm("Evict this cluster?", yes); err != nil {
		return err
	}
	for i, c := range clusters {
		if _, err := c.WriteKeys(ctx, cluster.Keys{Root: keys[i].Root, Pins: all[i].Encode()}); err != nil {
			return err
		}
		if err := c.Nudge(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	if err := followed(ctx, a, clusters, func(i int) authority.Pins { return all[i] }); err != nil {
		return err
	}
	for _, c := range clusters {
		a.Printer().Line("%s: cluster %s is evicted, and every daemon has followed", c.Context, id)
	}
	return nil
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
			return keysEvict(a, d, clustermesh.ClusterName(args[0]), yes)
		},
	}
	d.flag(c)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().StringArrayVar(&contexts, "context", nil, "`name` of a kubeconfig context whose cluster evicts; repeatable")
	t.flags(c)
	return c
}

func keysEvict(a *cli.App, d keyDir, id clustermesh.ClusterName, yes bool) error {
	pins, _, own, err := d.read()
	if err != nil {
		return err
	}
	pin, pinned := pins[id]
	switch {
	case id == own:
		return cli.UsageError("%s is this cluster; evict it in the others", id)
	case !pinned:
		return cli.UsageError("no cluster %s is pinned in %s", id, d.pins())
	}
	showPins(a, authority.Pins{id: pin})
	if err := a.Confirm("Evict this cluster?", yes); err != nil {
		return err
	}
	delete(pins, id)
	if err := d.writePins(pins); err != nil {
		return err
	}
	a.Printer().Line("evicted from %s; daemons that read it follow within seconds", d.pins())
	return nil
}
