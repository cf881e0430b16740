package fleet

import (
	"context"
	"fmt"

	"strait.io/strait/cli"
	"strait.io/strait/install/chart"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/trust"
)

// firstKeys gives a cluster that was just installed a root and its own pin, and has only pins count at once: it
// knows no other cluster that could be cut off. Where nothing has the ranges of its pods, its leader does
// so when it knows. A release of before, whose daemons may believe others, gets nothing by this.
func firstKeys(ctx context.Context, a *cli.App, c *cluster.Cluster, values chart.Values) error {
	if now, _ := values["authority"].(map[string]any); turnedOff(now) || now["sign"] == false {
		return nil
	}
	v, err := c.View(ctx)
	if err != nil {
		return err
	}
	keys, err := c.ReadKeys(ctx)
	if err != nil || len(keys.Root)+len(keys.Pins) > 0 {
		return err
	}
	root, _, err := readKeys(keys)
	if err != nil {
		return fmt.Errorf("context %s: %w", c.Context, err)
	}
	one := trust.Member{Cluster: v.Cluster, Root: root.Public()}
	network, err := c.ReadNetwork(ctx)
	if err != nil {
		return err
	}
	one.Ranges, _ = trust.Sources(network).PodRanges()
	if len(one.Ranges)+len(one.PodCIDRs) == 0 {
		if one.PodAddrs, err = c.PodAddrs(ctx); err != nil {
			return err
		}
	}
	pins, err := trust.Alone(one)
	if err != nil {
		a.Printer().Line("%s: the leader makes the cluster's keys, once its nodes say which ranges their pods have", c.Context)
		return nil
	}
	changes, err := c.WriteKeys(ctx, cluster.Keys{Root: []byte(root.Base64() + "\n"), Pins: pins.Encode()})
	if err == nil {
		var more []cluster.Change
		more, err = c.TrustPinned(ctx)
		changes = append(changes, more...)
	}
	printChanges(a, changes)
	if err == nil {
		a.Printer().Line("%s: cluster %s believes only what is signed; its root is %s", c.Context, v.Cluster.ID, root.Public().Fingerprint())
	}
	return err
}
