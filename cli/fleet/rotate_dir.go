package fleet

import (
	"context"
	"fmt"
	"slices"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/vault"
)

// keysRotate makes the first steps to replace the root of a directory: the new root, pinned beside
// the old one. Made again, it changes nothing.
func keysRotate(ctx context.Context, a *cli.App, d directory) error {
	keys, err := d.ReadKeys(ctx)
	if err != nil {
		return err
	}
	if keys.Step() == vault.Forget {
		return fmt.Errorf("%s still lists the old root: finish that rotation first: strait clusterset rotate --finish", d.pins())
	}
	// The new root first, so that what is pinned is not lost.
	if keys, err = keys.WithNext(newRoot); err != nil {
		return err
	}
	if err := d.WriteKeys(ctx, keys); err != nil {
		return err
	}
	keys = keys.Pinning(keys.Own, keys.Both()...)
	if err := d.WriteKeys(ctx, keys); err != nil {
		return err
	}
	showPins(a, authority.Pins{keys.Own: keys.Pins[keys.Own]})
	p := a.Printer()
	p.Line("next: copy %s to all machines of this cluster; accept it in the others: strait clusterset accept", d.pins())
	p.Line("then: strait clusterset rotate --finish")
	return nil
}

// keysFinish makes the next step: the new root takes the place of the old one, or that goes from
// the pins.
func keysFinish(ctx context.Context, a *cli.App, d directory) error {
	keys, err := d.ReadKeys(ctx)
	if err != nil {
		return err
	}
	switch step := keys.Step(); {
	case step == vault.Forget, keys.Next == nil && len(keys.Pins[keys.Own].Roots) > 1:
		return keysForget(ctx, a, d, keys)
	case step == vault.Make:
		return fmt.Errorf("there is no %s: begin with strait clusterset rotate", d.nextRoot())
	case step == vault.PinBoth:
		return fmt.Errorf("%s does not list the key in %s: begin again with strait clusterset rotate", d.pins(), d.nextRoot())
	}
	// The pins list both until all nodes are stated by the new one.
	if err := d.WriteKeys(ctx, keys.Given()); err != nil {
		return err
	}
	showPins(a, authority.Pins{keys.Own: keys.Pins[keys.Own]})
	p := a.Printer()
	p.Line("next: copy %s to all machines of this cluster that have the root, and restart straitd there", d.root())
	p.Line("then: strait clusterset rotate --finish again, so that the old root is not trusted any more")
	return nil
}

// keysForget is the last step: the old root goes from the pins, if no node needs it any more.
func keysForget(ctx context.Context, a *cli.App, d directory, keys vault.Keys) error {
	lists, err := d.Members(ctx)
	if err != nil {
		return err
	}
	for _, list := range lists {
		if left := list.OfOtherRoot(string(keys.Own), keys.Root.Public().Fingerprint()); len(left) > 0 {
			return fmt.Errorf("%s: still certified by the old root; copy %s to the machines that have the root, restart straitd there, and run this command again; the others follow within seconds", cli.Some(left, 5), d.root())
		}
	}
	keys = keys.Pinning(keys.Own, keys.Root.Public())
	if err := d.WriteKeys(ctx, keys); err != nil {
		return err
	}
	showPins(a, authority.Pins{keys.Own: keys.Pins[keys.Own]})
	p := a.Printer()
	p.Line("next: copy %s to all machines of this cluster", d.pins())
	p.Line("then: accept it in the other clusters: strait clusterset accept")
	return nil
}

// rotateGossipHere makes the next step to replace the gossip key in a directory, if all daemons
// have made the one before.
func rotateGossipHere(ctx context.Context, a *cli.App, d directory) error {
	g, err := d.ReadGossip(ctx)
	if err != nil {
		return err
	}
	if g.Next == nil && len(g.Ring) == 1 {
		next, err := newGossipKey()
		if err != nil {
			return err
		}
		g.Next = &next
	}
	if g.Next == nil || len(g.Ring) > 1 && !slices.Contains(g.Ring, *g.Next) {
		return fmt.Errorf("%s does not list the key in %s; copy both from the machine where the rotation began", d.gossip(), d.nextGossip())
	}
	lists, err := d.Members(ctx)
	if err != nil {
		return fmt.Errorf("the daemon here knows who follows; run this where straitd runs: %w", err)
	}
	nodes := 0
	for _, list := range lists {
		if nodes, err = mayStep(a, d, g, list); err != nil {
			return err
		}
	}
	return stepGossip(ctx, a, d, g, nodes)
}

// mayStep counts the nodes that the daemon hears. It returns an error if one does not have the keys
// of the directory yet.
func mayStep(a *cli.App, d directory, g vault.Gossip, list api.MemberList) (nodes int, err error) {
	reported := list.GossipKeys()
	if err := vault.AllPublish(reported); err != nil {
		return 0, err
	}
	for _, m := range list.Items {
		if _, heard := reported[m.Cluster+"/"+m.Node]; m.Node != "" && !heard {
			a.Printer().Line("%s %s/%s is not heard: copy %s to it before it comes back", api.Warn, m.Cluster, m.Node, d.gossip())
		}
	}
	if lag := g.Ring.Lagging(reported); len(lag) > 0 {
		return 0, fmt.Errorf("these nodes do not have the keys of %s yet: %s; copy it to them, and do this again", d.gossip(), cli.Some(lag, 5))
	}
	return len(reported), nil
}

func stepGossip(ctx context.Context, a *cli.App, d directory, g vault.Gossip, nodes int) error {
	p, next := a.Printer(), *g.Next
	if len(g.Ring) == 1 && g.Ring[0] == next {
		g.Next = nil
		if err := d.WriteGossip(ctx, g); err != nil {
			return err
		}
		p.Line("the gossip key is %s on all %d nodes, and the old one counts nowhere", next.Fingerprint(), nodes)
		return nil
	}
	g.Ring = g.Ring.Toward(next)
	if err := d.WriteGossip(ctx, g); err != nil {
		return err
	}
	p.Line("%s", vault.GossipText(g.Ring, next))
	p.Line("next: copy %s to all machines of all clusters; daemons follow without a restart", d.gossip())
	p.Line("then: strait clusterset rotate --gossip-key")
	return nil
}
