package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/cluster"
)

func connectCommand(a *cli.App) *cobra.Command {
	var t target
	var f pinFlags
	var contexts []string
	c := &cobra.Command{
		Use:   "connect [CONTEXT...]",
		Short: "Join the clusters of two or more contexts, and wait until they are connected",
		Long: `Give the clusters of all contexts one gossip key and each other's node addresses, and restart the
daemons that have another key. Then wait for a handshake in both directions between every two
clusters, or say which two have none, and why.

Nothing is written if two clusters have the same id or overlapping pod ranges. Clusters that were
joined earlier stay joined, and need no context unless their key changes.

Each cluster gets a root key that signs its records, and the clusters trust only each other,
inside the ranges that connect shows. It asks before it writes. Ranges come from the cluster's
network (Calico, Cilium, flannel, kubeadm, kube-proxy), from the Nodes, or from the pods, widened so
that more can come; flags give others. With --pin=false, every holder of the gossip key is trusted.`,
		Example: `  strait clusterset connect --context c1 --context c2
  strait clusterset connect --context c1 --context c2 --yes    # in scripts
  strait clusterset connect c1 c2 c3    # the same with arguments: c3 joins the other two
  strait clusterset connect --context c1 --context c2 --pods c1=10.11.0.0/16`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect(cmd.Context(), a, t, append(contexts, args...), f)
		},
	}
	c.Flags().StringArrayVar(&contexts, "context", nil, "`name` of a kubeconfig context; give two or more")
	f.declare(c)
	t.flags(c)
	return c
}

func connect(ctx context.Context, a *cli.App, t target, contexts []string, f pinFlags) error {
	if len(contexts) < 2 {
		return cli.UsageError("connect needs two clusters: strait clusterset connect CONTEXT CONTEXT")
	}
	m, err := openMembers(ctx, a, t, contexts)
	if err != nil {
		return err
	}
	if err := refuseListed(ctx, m.clusters...); err != nil {
		return err
	}
	b, err := bundle.Merge(m.views, freshKey())
	if err != nil {
		return fmt.Errorf("cannot join:\n%w", err)
	}
	if _, err := f.asked(); err != nil {
		return err
	}
	if !f.pin {
		if err := turnOff(ctx, a, t, m); err != nil {
			return err
		}
		if err := join(ctx, a, t, m, b); err != nil {
			return err
		}
		if err := awaitHandshakes(ctx, a, t, m, b); err != nil {
			return err
		}
		a.Printer().Line("nothing is pinned by this, so every holder of the gossip key is trusted: to have the clusters trust only each other, give the same command without --pin=false")
		return nil
	}
	trusting, err := propose(ctx, a, m, b, f)
	if err != nil {
		return err
	}
	err = pinTogether(pinSteps{
		write:  func() error { return trusting.write(ctx, a) },
		join:   func() error { return join(ctx, a, t, m, b) },
		turnOn: func(value string) error { return turnOn(ctx, a, t, m, value) },
		meet:   func() error { return awaitHandshakes(ctx, a, t, m, b) },
		signed: func() error {
			ctx, cancel := t.waiting(ctx)
			defer cancel()
			return signed(ctx, m.vaults())
		},
		followed: func() error {
			ctx, cancel := t.waiting(ctx)
			defer cancel()
			return followed(ctx, m.vaults(), func(int) authority.Pins { return trusting.pins })
		},
	})
	if err == nil {
		a.Printer().Line("pinned: %s; every daemon has followed", strings.Join(b.Members(), ", "))
	}
	return err
}

// join gives all clusters the bundle, and waits for the daemons that have to restart for it.
func join(ctx context.Context, a *cli.App, t target, m members, b bundle.Bundle) error {
	p := a.Printer()
	for i, c := range m.clusters {
		done, err := c.WriteBundle(ctx, b, m.views[i].Cluster.ID)
		if err != nil {
			return err
		}
		p.Line("%s: cluster %s, %d nodes: Secret %s is %s", c.Context, m.views[i].Cluster.ID, len(m.views[i].Cluster.Nodes), done.Name, done.Did)
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	for _, c := range m.clusters {
		if err := c.RollDaemons(ctx, b); err != nil {
			return err
		}
	}
	for _, c := range m.clusters {
		if _, err := c.WaitDaemonSet(ctx, cluster.Daemon, func(s string) { p.Line("%s: %s", c.Context, s) }); err != nil {
			return waitOver(err)
		}
	}
	return nil
}

// askEvery is how often the daemons are asked whether there is a handshake.
const askEvery = 2 * time.Second

// awaitHandshakes waits for a handshake in both directions between every two of the clusters.
func awaitHandshakes(ctx context.Context, a *cli.App, t target, m members, b bundle.Bundle) error {
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	p := a.Printer()
	var pairs []cluster.Pair
	for {
		var err error
		if pairs, err = m.pairs(ctx); err == nil && !slices.ContainsFunc(pairs, func(x cluster.Pair) bool { return !x.OK }) {
			break
		}
		select {
		case <-ctx.Done():
			printPairs(a, pairs)
			return waitOver(fmt.Errorf("the clusters are not connected: %w", context.Cause(ctx)))
		case <-time.After(askEvery):
		}
	}
	printPairs(a, pairs)
	p.Line("joined: %s; gossip key %s", strings.Join(b.Members(), ", "), b.GossipKey.Fingerprint())
	p.Line("next: strait dns setup --context %s, and the same for each other context; then export a Service: docs/kubernetes.md", m.clusters[0].Context)
	return nil
}
