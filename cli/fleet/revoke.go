package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/install/cluster"
)

const nodeRevokeLong = `Stop trusting a node of this cluster that was stolen or taken over: no cluster accepts the key with
which it signs any more, whatever it signs, and whichever daemon forwards that. Its record and its
backends go within seconds. It needs no answer from the node, and no change in other clusters.

The node gets no other key signed while its name is what it was: remove its Node object, or outside
Kubernetes the annotation strait.io/node-key, until another machine has the name.

A machine that has the root of the cluster can sign new keys: then replace the root too, with
strait clusterset rotate.

In Kubernetes, name the context of the node's cluster. revoke returns when every daemon of it has
followed. Outside Kubernetes, run it on a machine with the root, and copy the changed pins to the
others that have the root; all other daemons follow by themselves.

The key comes from strait members; --key gives that of a node that is not heard.`

// revocation is what the user asked for.
type revocation struct {
	node, key, context string
	yes                bool
}

func RevokeCommand(a *cli.App) *cobra.Command {
	var d keyDir
	var t target
	var r revocation
	c := &cobra.Command{
		Use:     "revoke NODE",
		Short:   "Stop trusting a node of this cluster, in all clusters",
		Long:    nodeRevokeLong,
		Example: "  strait nodes revoke n7\n  strait nodes revoke n7 --context us-east --yes    # as strait node revoke",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.node = args[0]
			if r.key != "" {
				if err := clustermesh.CheckFingerprint(r.key); err != nil {
					return cli.UsageError("--key: %v", err)
				}
			}
			if r.context != "" {
				return revokeMember(cmd.Context(), a, t, r)
			}
			return revokeHere(cmd.Context(), a, d, r)
		},
	}
	d.flag(c)
	c.Flags().StringVar(&r.key, "key", "", "`fingerprint` of the key, if the node is not heard")
	c.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	c.Flags().StringVar(&r.context, "context", "", "`name` of the kubeconfig context of the node's cluster")
	t.flags(c)
	return c
}

// revokeHere revokes a key in the pins of this machine.
func revokeHere(ctx context.Context, a *cli.App, d keyDir, r revocation) error {
	pins, _, own, err := d.read()
	if err != nil {
		return err
	}
	if r.key == "" {
		list, err := cli.Ask(ctx, a, (*client.Client).Members)
		if err != nil {
			return err
		}
		if r.key, err = r.find(own, *list); err != nil {
			return err
		}
	}
	if err := revoke(a, pins, own, r); err != nil {
		return err
	}
	if err := d.writePins(pins); err != nil {
		return err
	}
	a.Printer().Line("revoked in %s; copy it to the other machines that have the root. All daemons follow within seconds", d.pins())
	return nil
}

// find returns the fingerprint of the key with which a node signs.
func (r revocation) find(own clustermesh.ClusterName, l api.MemberList) (string, error) {
	for _, m := range l.Items {
		if m.Cluster != string(own) || m.Node != r.node || len(m.Keys) != 1 {
			continue
		}
		if m.State == api.Self {
			return "", cli.UsageError("%s is the machine that answers; run this on another, or give --key", r.node)
		}
		return m.Keys[0], nil
	}
	return "", cli.UsageError("no node %s of cluster %s is known with a key; see strait members, or give --key", r.node, own)
}

// revoke adds a key to this cluster's own pin.
func revoke(a *cli.App, pins authority.Pins, own clustermesh.ClusterName, r revocation) error {
	pin := pins[own]
	if slices.Contains(pin.Revoked, r.key) {
		return cli.UsageError("the key %s is revoked already", r.key)
	}
	a.Printer().Line("node %s of cluster %s signs with %s", r.node, own, r.key)
	if err := a.Confirm("Revoke this key for ever?", r.yes); err != nil {
		return err
	}
	pin.Revoked = append(slices.Clip(pin.Revoked), r.key)
	pins[own] = pin
	return nil
}

// revokeMember revokes a key in the pins of a Kubernetes cluster, and waits until its daemons follow.
func revokeMember(ctx context.Context, a *cli.App, t target, r revocation) error {
	c, err := t.open(r.context)
	if err != nil {
		return err
	}
	keys, err := c.ReadKeys(ctx)
	if err != nil {
		return err
	}
	_, pins, err := readKeys(keys)
	id, idErr := c.ID(ctx)
	switch {
	case err != nil || idErr != nil:
		return errors.Join(err, idErr)
	case pins == nil:
		return cli.UsageError("context %s pins nothing; every holder of the gossip key is trusted: strait clusterset connect pins", c.Context)
	}
	own := clustermesh.ClusterName(id)
	if r.key == "" {
		if r.key, err = r.findIn(ctx, c, own); err != nil {
			return err
		}
	}
	if err := revoke(a, pins, own, r); err != nil {
		return err
	}
	if _, err := c.WriteKeys(ctx, cluster.Keys{Root: keys.Root, Pins: pins.Encode()}); err != nil {
		return err
	}
	if err := c.Nudge(ctx); err != nil {
		return err
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	if err := r.gone(ctx, c, own); err != nil {
		return err
	}
	a.Printer().Line("%s: the key is revoked, and every other daemon has followed", c.Context)
	return nil
}

// findIn returns the fingerprint of the key of a node, as daemons of its cluster see it.
func (r revocation) findIn(ctx context.Context, c *cluster.Cluster, own clustermesh.ClusterName) (string, error) {
	lists, err := c.Members(ctx)
	if err != nil && len(lists) == 0 {
		return "", err
	}
	for node, l := range lists {
		if node == r.node {
			continue // it may lie
		}
		if key, err := r.find(own, l); err == nil {
			return key, nil
		}
	}
	return "", cli.UsageError("no daemon of context %s knows node %s with a key; give --key", c.Context, r.node)
}

// gone waits until no daemon of the cluster, but that of the node itself, believes the key.
func (r revocation) gone(ctx context.Context, c *cluster.Cluster, own clustermesh.ClusterName) error {
	for {
		who := ""
		lists, err := c.Members(ctx)
		for node, l := range lists {
			key, _ := r.find(own, l)
			if node != r.node && key == r.key {
				who = "the daemon on " + node + " still believes the node"
			}
		}
		if err != nil {
			who = err.Error()
		}
		if who == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return waitOver(fmt.Errorf("%s: %w", who, context.Cause(ctx)))
		case <-time.After(500 * time.Millisecond):
		}
	}
}
