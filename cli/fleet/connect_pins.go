package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/trust"
)

// trusting are the members of a connect with their keys.
type trusting struct {
	members
	roots   []authority.PrivateKey
	next    [][]byte // of a rotation that was begun
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
func propose(ctx context.Context, a *cli.App, m members, b bundle.Bundle, f pinFlags) (*trusting, error) {
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
			a.Printer().Line("%s: cluster %s has its pods in %v, says %s", c.Context, m.views[i].Cluster.ID, ranges, from)
		}
		one := trust.Member{Cluster: m.views[i].Cluster, Ranges: ranges, Regions: m.views[i].Regions, Zones: m.views[i].Zones, Root: root.Public(), Pins: pins}
		if len(ranges)+len(one.PodCIDRs) == 0 {
			if one.PodAddrs, err = c.PodAddrs(ctx); err != nil {
				return nil, err
			}
		}
		t.roots, t.next = append(t.roots, root), append(t.next, keys.Next)
		t.trusted = append(t.trusted, one)
	}
	if t.pins, err = trust.Propose(t.trusted, b.Members(), asked, a.Now()); err != nil {
		return nil, fmt.Errorf("cannot pin:\n%w", err)
	}
	showPins(a, t.pins)
	for _, shared := range t.pins.SharedNodes() {
		a.Printer().Line("! %s: each could claim addresses of the other's machines; to keep them apart, pass --nodes CLUSTER=CIDR[,CIDR]", shared)
	}
	return t, a.Confirm("Compare the roots with what the other clusters show. Pin these clusters?", f.yes)
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
func (t *trusting) write(ctx context.Context, a *cli.App) error {
	for i, c := range t.clusters {
		pins := trust.For(t.pins, t.trusted[i], t.asked)
		done, err := c.WriteKeys(ctx, cluster.Keys{Root: []byte(t.roots[i].Base64() + "\n"), Next: t.next[i], Pins: pins.Encode()})
		if err != nil {
			return err
		}
		for _, d := range done {
			a.Printer().Line("%s: cluster %s, root %s: %s %s is %s", c.Context, t.trusted[i].ID, t.trusted[i].Root.Fingerprint(), d.Kind, d.Name, d.Did)
		}
		if err := c.Nudge(ctx); err != nil {
			return err
		}
	}
	return nil
}
