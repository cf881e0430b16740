package fleet

import (
	"context"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/install/vault"
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
			return revokeHere(cmd.Context(), a, directory{d, a}, r)
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
func revokeHere(ctx context.Context, a *cli.App, d directory, r revocation) error {
	if _, _, err := r.write(ctx, a, d); err != nil {
		return err
	}
	a.Printer().Line("revoked in %s; copy it to the other machines that have the root. All daemons follow within seconds", d.pins())
	return nil
}

// revokeMember revokes a key in the pins of a Kubernetes cluster, and waits until its daemons follow.
func revokeMember(ctx context.Context, a *cli.App, t target, r revocation) error {
	c, err := t.open(r.context)
	if err != nil {
		return err
	}
	r, keys, err := r.write(ctx, a, secret{c})
	if err != nil {
		return err
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	if err := until(ctx, "not every daemon has followed", func() string { return r.believed(ctx, secret{c}, keys.Own) }); err != nil {
		return err
	}
	a.Printer().Line("%s: the key is revoked, and every other daemon has followed", c.Context)
	return nil
}

// write finds the key, asks, and revokes it in a vault. It returns the revocation with the key, and
// what the vault then holds.
func (r revocation) write(ctx context.Context, a *cli.App, v vault.Vault) (revocation, vault.Keys, error) {
	keys, err := v.ReadKeys(ctx)
	if err == nil && keys.Pins == nil {
		err = pinsNothing(v)
	}
	if err != nil {
		return r, keys, asUsage(err)
	}
	if r.key == "" {
		if r.key, err = r.find(ctx, v, keys.Own); err != nil {
			return r, keys, err
		}
	}
	after, err := keys.Revoke(r.key)
	if err != nil {
		return r, keys, asUsage(err)
	}
	a.Printer().Line("node %s of cluster %s signs with %s", r.node, keys.Own, r.key)
	if err := a.Confirm("Revoke this key permanently?", r.yes); err != nil {
		return r, keys, err
	}
	return r, after, v.WriteKeys(ctx, after)
}

// find returns the fingerprint of the key of a node, as other daemons see it.
func (r revocation) find(ctx context.Context, v vault.Vault, own clustermesh.ClusterName) (string, error) {
	lists, err := v.Members(ctx)
	if err != nil && len(lists) == 0 {
		return "", err
	}
	itself := false
	for _, l := range lists {
		key, self := vault.KeyOf(l, own, r.node)
		if itself = itself || self; key != "" && !self { // a node may lie about itself
			return key, nil
		}
	}
	if itself {
		return "", cli.UsageError("%s is the machine that answers; run this on another, or give --key", r.node)
	}
	return "", cli.UsageError("no node %s of cluster %s is known with a key; see strait members, or give --key", r.node, own)
}

// believed names a daemon, besides that of the node itself, which still believes the key; "" if
// none does.
func (r revocation) believed(ctx context.Context, v vault.Vault, own clustermesh.ClusterName) string {
	lists, err := v.Members(ctx)
	for node, l := range lists {
		if key, self := vault.KeyOf(l, own, r.node); key == r.key && !self {
			return "the daemon on " + node + " still believes the node"
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
