package fleet

import (
	"context"
	"fmt"

	"strait.io/strait/cli"
	"strait.io/strait/install/chart"
	"strait.io/strait/install/cluster"
)

// upgrade is a cluster whose chart gets other values.
type upgrade struct {
	*cluster.Cluster
	values chart.Values
}

// upgradeAll applies the charts of all clusters and then waits for their daemons, which restart at the same
// time: clusters do not wait for each other. what names the change.
func upgradeAll(ctx context.Context, a *cli.App, t target, all []upgrade, what string) error {
	for _, u := range all {
		a.Printer().Line("%s: applying %s", u.Context, what)
		if err := applyChart(ctx, a, u.Cluster, u.values, false); err != nil {
			return err
		}
	}
	for _, u := range all {
		if err := waitDaemons(ctx, a, u.Cluster, t, u.values); err != nil {
			return err
		}
	}
	return nil
}

// turnOn sets a value of authority in all clusters that lack it, and waits for their daemons.
func turnOn(ctx context.Context, a *cli.App, t target, m members, value string) error {
	var all []upgrade
	for _, c := range m.clusters {
		have, _, err := c.Values(ctx)
		if err != nil {
			return err
		}
		now, _ := have["authority"].(map[string]any)
		if now[value] == true && !turnedOff(now) {
			continue
		}
		all = append(all, upgrade{c, chart.Merge(have, chart.Values{"authority": map[string]any{value: true, "mode": nil}})})
	}
	return upgradeAll(ctx, a, t, all, "authority."+value+"=true")
}

// turnedOff reports whether the values of authority say off. YAML takes off without quotes for false.
func turnedOff(values map[string]any) bool { return values["mode"] == "off" || values["mode"] == false }

// turnOff sets authority.mode=off in all clusters that pin only themselves: they would refuse the others. Those
// that pin others stay as they are.
func turnOff(ctx context.Context, a *cli.App, t target, m members) error {
	var all []upgrade
	var off []*cluster.Cluster
	for _, c := range m.clusters {
		keys, err := c.ReadKeys(ctx)
		if err != nil {
			return err
		}
		_, pins, err := readKeys(keys)
		if err != nil {
			return fmt.Errorf("context %s: %w", c.Context, err)
		}
		have, _, err := c.Values(ctx)
		if err != nil {
			return err
		}
		if len(pins) > 1 {
			continue
		}
		off = append(off, c)
		if now, _ := have["authority"].(map[string]any); turnedOff(now) {
			continue
		}
		all = append(all, upgrade{c, chart.Merge(have, chart.Values{"authority": map[string]any{"mode": "off", "sign": nil, "pin": nil}})})
	}
	if err := upgradeAll(ctx, a, t, all, "authority.mode=off"); err != nil {
		return err
	}
	// Only now: a leader with the former values would write it again. An earlier connect may have been
	// interrupted before it came to this.
	for _, c := range off {
		if err := c.TrustPinsLater(ctx); err != nil {
			return err
		}
	}
	return nil
}
