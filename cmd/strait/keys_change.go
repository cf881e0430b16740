package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/keyfile"
)

func (a *app) keysEvictCommand() *cobra.Command {
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
				return a.evictMembers(cmd.Context(), t, contexts, clustermesh.ClusterName(args[0]), yes)
			}
			return a.keysEvict(d, clustermesh.ClusterName(args[0]), yes)
		},
	}
	d.flag(c)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().StringArrayVar(&contexts, "context", nil, "`name` of a kubeconfig context whose cluster evicts; repeatable")
	t.flags(c)
	return c
}

func (a *app) keysEvict(d keyDir, id clustermesh.ClusterName, yes bool) error {
	pins, _, own, err := d.read()
	if err != nil {
		return err
	}
	pin, pinned := pins[id]
	switch {
	case id == own:
		return usageError("%s is this cluster; evict it in the others", id)
	case !pinned:
		return usageError("no cluster %s is pinned in %s", id, d.pins())
	}
	a.showPins(authority.Pins{id: pin})
	if err := a.confirm("Evict this cluster?", yes); err != nil {
		return err
	}
	delete(pins, id)
	if err := d.writePins(pins); err != nil {
		return err
	}
	a.printer().line("evicted from %s; daemons that read it follow within seconds", d.pins())
	return nil
}

func (d keyDir) nextRoot() string { return d.root() + ".next" }

func (a *app) keysRotateCommand() *cobra.Command {
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
				return usageError("--gossip-key is for the whole clusterset: it goes with neither a CLUSTER nor --finish")
			case gossip && len(contexts) > 0:
				return a.rotateGossipMembers(cmd.Context(), t, contexts)
			case gossip:
				return a.rotateGossipHere(cmd.Context(), d)
			case len(contexts) > 0 && len(args) == 1 && !finish:
				return a.rotateMembers(cmd.Context(), t, contexts, clustermesh.ClusterName(args[0]))
			case len(contexts) > 0 || len(args) > 0:
				return usageError("want a CLUSTER with --context of all clusters, or neither and, for the second step, --finish")
			case finish:
				return a.keysFinish(cmd.Context(), d)
			}
			return a.keysRotate(d)
		},
	}
	d.flag(c)
	c.Flags().BoolVar(&gossip, "gossip-key", false, "replace the key that all daemons share")
	c.Flags().BoolVar(&finish, "finish", false, "the second step, and the third")
	c.Flags().StringArrayVar(&contexts, "context", nil, "`name` of a kubeconfig context; give those of all clusters")
	t.flags(c)
	return c
}

func (a *app) keysRotate(d keyDir) error {
	pins, root, own, err := d.read()
	if err != nil {
		return err
	}
	text, err := keyfile.LoadOrMake(d.nextRoot(), func() (string, error) {
		k, err := authority.Generate(rand.Reader)
		return k.Base64(), err
	})
	if err != nil {
		return fmt.Errorf("the new root key: %w", err)
	}
	next, err := authority.ParsePrivate(text)
	if err != nil {
		return fmt.Errorf("the new root key %s: %w", d.nextRoot(), err)
	}
	pin := pins[own]
	pin.Roots = []authority.PublicKey{root.Public(), next.Public()}
	pins[own] = pin
	if err := d.writePins(pins); err != nil {
		return err
	}
	a.showPins(authority.Pins{own: pin})
	p := a.printer()
	p.line("next: copy %s to all machines of this cluster; accept it in the others: strait clusterset accept", d.pins())
	p.line("then: strait clusterset rotate --finish")
	return nil
}

func (a *app) keysFinish(ctx context.Context, d keyDir) error {
	pins, root, own, err := d.read()
	if err != nil {
		return err
	}
	text, err := keyfile.Read(d.nextRoot(), keyfile.AnyOther)
	if errors.Is(err, fs.ErrNotExist) && len(pins[own].Roots) > 1 {
		return a.keysForget(ctx, d, pins, own, root.Public())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: begin with strait clusterset rotate", err)
	}
	if err != nil {
		return fmt.Errorf("the new root key: %w", err)
	}
	next, err := authority.ParsePrivate(text)
	if err != nil {
		return fmt.Errorf("the new root key %s: %w", d.nextRoot(), err)
	}
	pin := pins[own]
	if !slices.Contains(pin.Roots, next.Public()) {
		return fmt.Errorf("%s does not list the key in %s: begin again with strait clusterset rotate", d.pins(), d.nextRoot())
	}
	// The pins list both until all nodes are stated by the new one.
	err = durable.Replace(d.root(), func(f *os.File) error {
		_, err := f.WriteString(next.Base64() + "\n")
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Remove(d.nextRoot()); err != nil {
		return err
	}
	a.showPins(authority.Pins{own: pin})
	p := a.printer()
	p.line("next: copy %s to all machines of this cluster that have the root, and restart straitd there", d.root())
	p.line("then: strait clusterset rotate --finish again, so that the old root is not trusted any more")
	return nil
}

// keysForget is the last step: the old root goes from the pins, if no node needs it any more.
func (a *app) keysForget(ctx context.Context, d keyDir, pins authority.Pins, own clustermesh.ClusterName, root authority.PublicKey) error {
	list, err := ask(ctx, a, (*client.Client).Members)
	if err != nil {
		return err
	}
	if left := list.OfOtherRoot(string(own), root.Fingerprint()); len(left) > 0 {
		return fmt.Errorf("%s: still certified by the old root; copy %s to the machines that have the root, restart straitd there, and run this command again; the others follow within seconds", some(left, 5), d.root())
	}
	pin := pins[own]
	pin.Roots = []authority.PublicKey{root}
	pins[own] = pin
	if err := d.writePins(pins); err != nil {
		return err
	}
	a.showPins(authority.Pins{own: pin})
	p := a.printer()
	p.line("next: copy %s to all machines of this cluster", d.pins())
	p.line("then: accept it in the other clusters: strait clusterset accept")
	return nil
}
