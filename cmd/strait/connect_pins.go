package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/chart"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/trust"
)

// pinFlags are what connect pins.
type pinFlags struct {
	pin, yes                             bool
	pods, nodes, regions, zones, accepts []string
}

func (f *pinFlags) declare(c *cobra.Command) {
	c.Flags().BoolVar(&f.pin, "pin", true, "have the clusters trust only each other")
	c.Flags().BoolVar(&f.yes, "yes", false, "pin without asking")
	for _, x := range []struct {
		to          *[]string
		name, usage string
	}{
		{&f.pods, "pods", "ranges of pods, `CLUSTER=CIDR`[,CIDR]; repeatable"},
		{&f.nodes, "nodes", "ranges of nodes, `CLUSTER=CIDR`[,CIDR]; repeatable"},
		{&f.regions, "regions", "regions of nodes, `CLUSTER=NAME`[,NAME]; repeatable"},
		{&f.zones, "zones", "zones of nodes, `CLUSTER=NAME`[,NAME]; repeatable"},
		{&f.accepts, "accept", "namespaces that others accept, `CLUSTER=NAME`[,NAME]"},
	} {
		c.Flags().StringArrayVar(x.to, x.name, nil, x.usage)
	}
}

// asked reads the flags.
func (f pinFlags) asked() (a trust.Asked, err error) {
	if !f.pin && len(f.pods)+len(f.nodes)+len(f.regions)+len(f.zones)+len(f.accepts) > 0 {
		return a, usageError("--pods, --nodes, --regions, --zones and --accept say what is pinned: leave out --pin=false")
	}
	split := func(flag string, values []string) map[string][]string {
		out := map[string][]string{}
		for _, v := range values {
			id, list, ok := strings.Cut(v, "=")
			if !ok || id == "" || list == "" {
				err = errors.Join(err, usageError("--%s %s: want CLUSTER=VALUE[,VALUE]", flag, v))
				continue
			}
			out[id] = append(out[id], strings.Split(list, ",")...)
		}
		return out
	}
	ranges := func(flag string, values []string) map[string][]netip.Prefix {
		out := map[string][]netip.Prefix{}
		for id, list := range split(flag, values) {
			for _, text := range list {
				p, bad := netip.ParsePrefix(text)
				if bad != nil {
					err = errors.Join(err, usageError("--%s %s=%s: %q is no CIDR, as in 10.11.0.0/16", flag, id, text, text))
				}
				out[id] = append(out[id], p)
			}
		}
		return out
	}
	a = trust.Asked{Pods: ranges("pods", f.pods), Nodes: ranges("nodes", f.nodes), Regions: split("regions", f.regions), Zones: split("zones", f.zones), Namespaces: split("accept", f.accepts)}
	return a, err
}

// trusting are the members of a connect with their keys.
type trusting struct {
	members
	roots   []authority.PrivateKey
	trusted []trust.Member
	asked   trust.Asked
	pins    authority.Pins
}

// pinSteps are what it takes to have clusters trust only each other. Signed and followed wait for all
// daemons.
type pinSteps struct {
	write, join, meet, signed, followed func() error
	turnOn                              func(value string) error
}

// pinTogether makes the steps. What pins already must know the newcomer before that is heard, and all must
// have signed before any pins.
func pinTogether(s pinSteps) error {
	for _, step := range []func() error{
		s.write,
		s.join,
		func() error { return s.turnOn("sign") },
		s.meet,
		s.signed,
		func() error { return s.turnOn("pin") },
		s.followed,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// propose reads or makes the clusters' roots, and asks whether the pins are right. It writes nothing.
func (a *app) propose(ctx context.Context, m members, b bundle.Bundle, f pinFlags) (*trusting, error) {
	asked, err := f.asked()
	if err != nil {
		return nil, err
	}
	t := &trusting{members: m, asked: asked}
	for i, c := range m.clusters {
		keys, err := c.ReadKeys(ctx)
		if err != nil {
			return nil, err
		}
		root, pins, err := readKeys(keys)
		if err != nil {
			return nil, fmt.Errorf("context %s: namespace %s: Secret %s and ConfigMap %s: %w", c.Context, c.Namespace, cluster.KeysSecret, cluster.PinsConfigMap, err)
		}
		network, err := c.ReadNetwork(ctx)
		if err != nil {
			return nil, err
		}
		ranges, from := trust.Sources(network).PodRanges()
		if from != "" {
			a.printer().line("%s: cluster %s has its pods in %v, says %s", c.Context, m.views[i].Cluster.ID, ranges, from)
		}
		one := trust.Member{Cluster: m.views[i].Cluster, Ranges: ranges, Regions: m.views[i].Regions, Zones: m.views[i].Zones, Root: root.Public(), Pins: pins}
		if len(ranges)+len(one.PodCIDRs) == 0 {
			if one.PodAddrs, err = c.PodAddrs(ctx); err != nil {
				return nil, err
			}
		}
		t.roots = append(t.roots, root)
		t.trusted = append(t.trusted, one)
	}
	if t.pins, err = trust.Propose(t.trusted, b.Members(), asked, a.now()); err != nil {
		return nil, fmt.Errorf("cannot pin:\n%w", err)
	}
	a.showPins(t.pins)
	for _, shared := range t.pins.SharedNodes() {
		a.printer().line("! %s: each could claim addresses of the other's machines; to keep them apart, pass --nodes CLUSTER=CIDR[,CIDR]", shared)
	}
	return t, a.confirm("Compare the roots with what the other clusters show. Pin these clusters?", f.yes)
}

// readKeys reads the root and the pins of a cluster; a new root if there is none.
func readKeys(k cluster.Keys) (root authority.PrivateKey, pins authority.Pins, err error) {
	if len(k.Root) == 0 {
		root, err = authority.Generate(rand.Reader)
	} else {
		root, err = authority.ParsePrivate(strings.TrimSpace(string(k.Root)))
	}
	if err != nil {
		return root, nil, fmt.Errorf("root.key: %w", err)
	}
	if len(k.Pins) > 0 {
		if pins, err = authority.ParsePins(k.Pins); err != nil {
			return root, nil, fmt.Errorf("pins.yaml: %w", err)
		}
	}
	return root, pins, nil
}

// write stores the keys and pins. Daemons that have pins already follow within seconds.
func (t *trusting) write(ctx context.Context, a *app) error {
	for i, c := range t.clusters {
		pins := trust.For(t.pins, t.trusted[i], t.asked)
		done, err := c.WriteKeys(ctx, cluster.Keys{Root: []byte(t.roots[i].Base64() + "\n"), Pins: pins.Encode()})
		if err != nil {
			return err
		}
		for _, d := range done {
			a.printer().line("%s: cluster %s, root %s: %s %s is %s", c.Context, t.trusted[i].ID, t.trusted[i].Root.Fingerprint(), d.Kind, d.Name, d.Did)
		}
		if err := c.Nudge(ctx); err != nil {
			return err
		}
	}
	return nil
}

// upgrade is a cluster whose chart gets other values.
type upgrade struct {
	*cluster.Cluster
	values chart.Values
}

// upgradeAll applies the charts of all clusters and then waits for their daemons, which restart at the same
// time: clusters do not wait for each other. what names the change.
func (a *app) upgradeAll(ctx context.Context, t target, all []upgrade, what string) error {
	for _, u := range all {
		a.printer().line("%s: applying %s", u.Context, what)
		if err := a.applyChart(ctx, u.Cluster, u.values, false); err != nil {
			return err
		}
	}
	for _, u := range all {
		if err := a.waitDaemons(ctx, u.Cluster, t, u.values); err != nil {
			return err
		}
	}
	return nil
}

// turnOn sets a value of authority in all clusters that lack it, and waits for their daemons.
func (a *app) turnOn(ctx context.Context, t target, m members, value string) error {
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
	return a.upgradeAll(ctx, t, all, "authority."+value+"=true")
}

// turnedOff reports whether the values of authority say off. YAML takes off without quotes for false.
func turnedOff(values map[string]any) bool { return values["mode"] == "off" || values["mode"] == false }

// turnOff sets authority.mode=off in all clusters that pin only themselves: they would refuse the others. Those
// that pin others stay as they are.
func (a *app) turnOff(ctx context.Context, t target, m members) error {
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
	if err := a.upgradeAll(ctx, t, all, "authority.mode=off"); err != nil {
		return err
	}
	// Only now: a leader with the former values would write it again. An earlier connect may have been
	// interrupted before it came to this.
	for _, c := range off {
		if err := c.BelieveLater(ctx); err != nil {
			return err
		}
	}
	return nil
}

// followed waits until all daemons have these pins.
func (a *app) followed(ctx context.Context, clusters []*cluster.Cluster, pins func(i int) authority.Pins) error {
	return until(ctx, "not every daemon has the pins", func() string { return lagging(ctx, clusters, pins) })
}

// until waits until nothing lags any more.
func until(ctx context.Context, what string, lag func() string) error {
	for {
		behind := lag()
		if behind == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return waitOver(fmt.Errorf("%s: %s: %w", what, behind, context.Cause(ctx)))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// signed waits until every daemon holds only signed records of those that are there: what is not signed
// goes where pins are turned on.
func (a *app) signed(ctx context.Context, clusters []*cluster.Cluster) error {
	return until(ctx, "not all is signed", func() string {
		return firstOf(ctx, clusters, func(l api.MemberList) []string { return l.Unsigned() })
	})
}

// firstOf returns what is found in the first list of members, of all daemons, in which anything is; "" if none does.
func firstOf(ctx context.Context, clusters []*cluster.Cluster, find func(api.MemberList) []string) string {
	for _, c := range clusters {
		lists, err := c.Members(ctx)
		if err != nil {
			return err.Error()
		}
		for node, l := range lists {
			if found := find(l); len(found) > 0 {
				return fmt.Sprintf("%s of context %s has %s", node, c.Context, some(found, 5))
			}
		}
	}
	return ""
}

// lagging names a daemon that has other pins; "" if none has.
func lagging(ctx context.Context, clusters []*cluster.Cluster, pins func(i int) authority.Pins) string {
	for i, c := range clusters {
		want := []string{}
		for id, p := range pins(i) {
			roots := make([]string, len(p.Roots))
			for j, r := range p.Roots {
				roots[j] = r.Fingerprint()
			}
			want = append(want, string(id)+" "+strings.Join(roots, " "))
		}
		slices.Sort(want)
		have, err := c.Pinned(ctx)
		if err != nil {
			return err.Error()
		}
		for node, got := range have {
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Sprintf("%s of context %s has %q, want %q", node, c.Context, got, want)
			}
		}
	}
	return ""
}

// evictMembers removes a cluster from the pins of the clusters of some contexts.
func (a *app) evictMembers(ctx context.Context, t target, contexts []string, id clustermesh.ClusterName, yes bool) error {
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
			return usageError("context %s is cluster %s itself; evict it in the others", c.Context, id)
		case pins == nil:
			return usageError("context %s pins nothing; every holder of the gossip key is trusted: strait clusterset connect pins", c.Context)
		case !pinned:
			a.printer().line("%s: cluster %s is not pinned", c.Context, id)
			continue
		default:
			a.showPins(authority.Pins{id: pin})
		}
		delete(pins, id)
		clusters, all, keys = append(clusters, c), append(all, pins), append(keys, k)
	}
	if len(clusters) == 0 {
		return nil
	}
	if err := a.confirm("Evict this cluster?", yes); err != nil {
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
	if err := a.followed(ctx, clusters, func(i int) authority.Pins { return all[i] }); err != nil {
		return err
	}
	for _, c := range clusters {
		a.printer().line("%s: cluster %s is evicted, and every daemon has followed", c.Context, id)
	}
	return nil
}
