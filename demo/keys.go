package demo

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/demo/lab"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/standalone"
)

func rootFile(l *lab.Lab, cluster string) string { return filepath.Join(l.Dir, cluster, "root.key") }

func pinsFile(l *lab.Lab, cluster string) string { return filepath.Join(l.Dir, cluster, "pins.yaml") }

func gossipKeyFile(l *lab.Lab) string { return filepath.Join(l.Dir, "gossip.key") }

// writeKeys makes the clusterset as strait clusterset init, invite and accept do: the first cluster
// invites the others, and each pins all others.
func writeKeys(l *lab.Lab) error {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	gossip := bundle.NewKey(random)
	if err := writeFile(gossipKeyFile(l), string(gossip)+"\n", 0o600); err != nil {
		return err
	}
	pins, founded := authority.Pins{}, time.Now()
	for i, c := range l.Clusters {
		root, err := authority.Generate(rand.Reader)
		if err != nil {
			return err
		}
		p := pinOf(c)
		p.Namespaces = []string{"*"}
		if p.Roots = []authority.PublicKey{root.Public()}; i == 0 {
			pins[p.Cluster] = p
		} else if pins, _, err = standalone.Invite(pins, p, root, gossip, nil, founded); err != nil {
			return fmt.Errorf("invite cluster %s: %w", c.Name, err)
		}
		if err := writeFile(rootFile(l, c.Name), root.Base64()+"\n", 0o600); err != nil {
			return err
		}
	}
	for _, c := range l.Clusters {
		own := clustermesh.ClusterName(c.Name)
		all, _, err := standalone.Merge(authority.Pins{own: pins[own]}, own, pins, []string{"*"})
		if err != nil {
			return fmt.Errorf("pin the others in cluster %s: %w", c.Name, err)
		}
		if err := writeFile(pinsFile(l, c.Name), string(all.Encode()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pinOf returns what a cluster of the lab has.
func pinOf(c lab.Cluster) authority.Pin {
	p := authority.Pin{Cluster: clustermesh.ClusterName(c.Name), Nodes: []netip.Prefix{c.Underlay.Masked()}}
	for _, n := range c.Nodes {
		all := netip.PrefixFrom(n.PodCIDR.Addr(), 16).Masked() // of the whole cluster, see lab.Cluster
		if !slices.Contains(p.Pods, all) {
			p.Pods = append(p.Pods, all)
		}
	}
	return p
}
