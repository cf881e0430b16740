package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/vault"
	"strait.io/strait/internal/gossipkey"
)

func newRoot() (authority.PrivateKey, error) { return authority.Generate(rand.Reader) }

func newGossipKey() (gossipkey.Key, error) { return gossipkey.Generate(rand.Reader) }

// rotateMembers replaces the root of a cluster. In each step, what was signed before it still counts.
func rotateMembers(ctx context.Context, a *cli.App, t target, contexts []string, id clustermesh.ClusterName) error {
	vaults, own, err := thatPin(ctx, t, contexts, id)
	if err != nil {
		return asUsage(err)
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	p, name := a.Printer(), contextOf(vaults[own])
	r := vault.RootRotation{Vaults: vaults, Own: own, Generate: newRoot, Wait: until,
		Report: func(format string, args ...any) { p.Line("%s: cluster %s: %s", name, id, fmt.Sprintf(format, args...)) }}
	root, err := r.Run(ctx)
	if err != nil {
		return resumable(err)
	}
	fmt.Fprintf(a.Stdout, "%s: the root of cluster %s is %s, and the old one counts nowhere\n", name, id, root.Fingerprint())
	return nil
}

// thatPin returns the vaults of all contexts, each of which must pin the cluster, and which of them
// is its own.
func thatPin(ctx context.Context, t target, contexts []string, id clustermesh.ClusterName) (vaults []vault.Vault, own int, err error) {
	if vaults, err = secrets(t, contexts); err == nil {
		err = notListed(ctx, vaults)
	}
	if err != nil {
		return nil, 0, err
	}
	own = -1
	var named []clustermesh.ClusterName
	var pins authority.Pins
	for i, v := range vaults {
		k, err := v.ReadKeys(ctx)
		if err != nil {
			return nil, 0, err
		}
		if _, pinned := k.Pins[id]; !pinned {
			return nil, 0, cli.UsageError("%s does not pin cluster %s; strait clusterset connect does", v, id)
		}
		if named = append(named, k.Own); k.Own == id {
			own, pins = i, k.Pins
		}
	}
	if own < 0 {
		return nil, 0, cli.UsageError("no context is that of cluster %s; give it, and those of all clusters that pin it", id)
	}
	var missing []string
	for c := range pins {
		if !slices.Contains(named, c) {
			missing = append(missing, string(c))
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		return nil, 0, cli.UsageError("%s is pinned too, and would refuse what the new root signs: give its --context, or evict it first", cli.Some(missing, 5))
	}
	return vaults, own, nil
}

// rotateGossipMembers replaces the gossip key of the clusters of all contexts.
func rotateGossipMembers(ctx context.Context, a *cli.App, t target, contexts []string) error {
	vaults, err := secrets(t, contexts)
	if err != nil {
		return err
	}
	if err := notListed(ctx, vaults); err != nil {
		return err
	}
	var named []string
	for _, v := range vaults {
		id, err := v.(secret).ID(ctx)
		if err != nil {
			return err
		}
		named = append(named, id)
	}
	missing, err := vault.Unnamed(ctx, vaults, named)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return cli.UsageError("%s would lose the others: give its --context too, or evict it first", cli.Some(missing, 5))
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	p := a.Printer()
	r := vault.GossipRotation{Vaults: vaults, Generate: newGossipKey, Wait: until, Report: func(format string, args ...any) { p.Line(format, args...) }}
	next, err := r.Run(ctx)
	if err != nil {
		return resumable(err)
	}
	fmt.Fprintf(a.Stdout, "the gossip key of %s is %s, and the old one counts nowhere\n", strings.Join(contexts, ", "), next.Fingerprint())
	return nil
}
