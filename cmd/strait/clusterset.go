package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/cluster"
)

func (a *app) clustersetCommand() *cobra.Command {
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
	c.AddCommand(a.connectCommand(), a.disconnectCommand(), a.clustersetStatusCommand(),
		a.keysInitCommand(), a.keysInviteCommand(), a.keysAcceptCommand(), a.keysPinsCommand(),
		a.keysEvictCommand(), a.keysRotateCommand())
	return c
}

func (a *app) connectCommand() *cobra.Command {
	var t target
	var f pinFlags
	var contexts []string
	c := &cobra.Command{
		Use:   "connect",
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
  strait clusterset connect --context c1 --context c2 --context c3    # c3 joins the other two
  strait clusterset connect --context c1 --context c2 --pods c1=10.11.0.0/16`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.connect(cmd.Context(), t, contexts, f) },
	}
	c.Flags().StringArrayVar(&contexts, "context", nil, "`name` of a kubeconfig context; give two or more")
	f.declare(c)
	t.flags(c)
	return c
}

// members are the clusters of contexts, with a view of each.
type members struct {
	clusters []*cluster.Cluster
	views    []bundle.View
}

func (a *app) members(ctx context.Context, t target, contexts []string) (m members, err error) {
	for _, name := range contexts {
		c, err := t.open(name)
		if err != nil {
			return m, err
		}
		v, err := c.View(ctx)
		if err != nil {
			return m, err
		}
		m.clusters, m.views = append(m.clusters, c), append(m.views, v)
	}
	return m, nil
}

func (m members) ids() (ids []string) {
	for _, v := range m.views {
		ids = append(ids, v.Cluster.ID)
	}
	return ids
}

func (a *app) connect(ctx context.Context, t target, contexts []string, f pinFlags) error {
	if len(contexts) < 2 {
		return usageError("connect needs two clusters: --context A --context B")
	}
	m, err := a.members(ctx, t, contexts)
	if err != nil {
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
		if err := a.turnOff(ctx, t, m); err != nil {
			return err
		}
		if err := a.join(ctx, t, m, b); err != nil {
			return err
		}
		if err := a.awaitHandshakes(ctx, t, m, b); err != nil {
			return err
		}
		a.printer().line("nothing is pinned by this, so every holder of the gossip key is trusted: to have the clusters trust only each other, give the same command without --pin=false")
		return nil
	}
	trusting, err := a.propose(ctx, m, b, f)
	if err != nil {
		return err
	}
	err = pinTogether(pinSteps{
		write:  func() error { return trusting.write(ctx, a) },
		join:   func() error { return a.join(ctx, t, m, b) },
		turnOn: func(value string) error { return a.turnOn(ctx, t, m, value) },
		meet:   func() error { return a.awaitHandshakes(ctx, t, m, b) },
		signed: func() error {
			ctx, cancel := t.waiting(ctx)
			defer cancel()
			return a.signed(ctx, m.clusters)
		},
		followed: func() error {
			ctx, cancel := t.waiting(ctx)
			defer cancel()
			return a.followed(ctx, m.clusters, func(int) authority.Pins { return trusting.pins })
		},
	})
	if err == nil {
		a.printer().line("pinned: %s; every daemon has followed", strings.Join(b.Members(), ", "))
	}
	return err
}

// join gives all clusters the bundle, and waits for the daemons that have to restart for it.
func (a *app) join(ctx context.Context, t target, m members, b bundle.Bundle) error {
	p := a.printer()
	for i, c := range m.clusters {
		done, err := c.WriteBundle(ctx, b, m.views[i].Cluster.ID)
		if err != nil {
			return err
		}
		p.line("%s: cluster %s, %d nodes: Secret %s is %s", c.Context, m.views[i].Cluster.ID, len(m.views[i].Cluster.Nodes), done.Name, done.Did)
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	for _, c := range m.clusters {
		if err := c.RollDaemons(ctx, b); err != nil {
			return err
		}
	}
	for _, c := range m.clusters {
		if _, err := c.WaitDaemonSet(ctx, cluster.Daemon, func(s string) { p.line("%s: %s", c.Context, s) }); err != nil {
			return waitOver(err)
		}
	}
	return nil
}

// askEvery is how often the daemons are asked whether there is a handshake.
const askEvery = 2 * time.Second

// awaitHandshakes waits for a handshake in both directions between every two of the clusters.
func (a *app) awaitHandshakes(ctx context.Context, t target, m members, b bundle.Bundle) error {
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	p := a.printer()
	var pairs []cluster.Pair
	for {
		var err error
		if pairs, err = m.pairs(ctx); err == nil && !slices.ContainsFunc(pairs, func(x cluster.Pair) bool { return !x.OK }) {
			break
		}
		select {
		case <-ctx.Done():
			a.printPairs(pairs)
			return waitOver(fmt.Errorf("the clusters are not connected: %w", context.Cause(ctx)))
		case <-time.After(askEvery):
		}
	}
	a.printPairs(pairs)
	p.line("joined: %s; gossip key %s", strings.Join(b.Members(), ", "), b.GossipKey.Fingerprint())
	p.line("next: strait dns setup --context %s, and the same for each other context; then export a Service: docs/kubernetes.md", m.clusters[0].Context)
	return nil
}

func (m members) pairs(ctx context.Context) ([]cluster.Pair, error) {
	var answers []cluster.Answer
	var first error
	for i, c := range m.clusters {
		got, err := c.Ask(ctx, m.views[i].Cluster.ID)
		answers = append(answers, got...)
		if err != nil && first == nil {
			first = err
		}
	}
	pairs := cluster.Pairs(m.ids(), answers)
	if len(answers) > 0 {
		first = nil // the daemons that answer are enough: Pairs reports the clusters that have none
	}
	return pairs, first
}

func (a *app) printPairs(pairs []cluster.Pair) {
	p := a.printer()
	for _, x := range pairs {
		if x.OK {
			p.line("✓ %s → %s: handshake", x.From, x.To)
		} else {
			p.line("✗ %s → %s: %s", x.From, x.To, clean(x.Why))
		}
	}
}

func (a *app) clustersetStatusCommand() *cobra.Command {
	var t target
	var contexts []string
	c := &cobra.Command{
		Use:               "status",
		Short:             "Show which clusters are joined, and whether they hear each other",
		Long:              "Show which clusters each context's cluster is joined to, and whether every two have a handshake.",
		Example:           "  strait clusterset status    # of the current context's cluster\n  strait clusterset status --context c1 --context c2",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := a.members(cmd.Context(), t, contexts)
			if err != nil {
				return err
			}
			for i, v := range m.views {
				joined := "none yet"
				if v.Have != nil {
					joined = strings.Join(v.Have.Members(), ", ") + "; gossip key " + v.Have.GossipKey.Fingerprint()
				}
				a.printer().line("%s: cluster %s; joined: %s", m.clusters[i].Context, v.Cluster.ID, joined)
			}
			pairs, err := m.pairs(cmd.Context())
			a.printPairs(pairs)
			if err == nil && slices.ContainsFunc(pairs, func(x cluster.Pair) bool { return !x.OK }) {
				return &exitError{code: exitProblem}
			}
			return err
		},
	}
	c.Flags().StringArrayVar(&contexts, "context", []string{""}, "`name` of a kubeconfig context; repeatable (default: the current one)")
	t.flags(c)
	return c
}
