package fleet

import (
	"context"

	"strait.io/strait/cli"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/vault"
)

// members are the clusters of contexts, with a view of each.
type members struct {
	clusters []*cluster.Cluster
	views    []bundle.View
}

func openMembers(ctx context.Context, a *cli.App, t target, contexts []string) (m members, err error) {
	for _, name := range contexts {
		c, err := t.open(name)
		if err != nil {
			return m, err
		}
		v, err := c.View(ctx)
		if err != nil {
			return m, err
		}
		m.clusters, m.views = append(m.clusters, c), append(m.views, v)
	}
	return m, nil
}

func (m members) vaults() (out []vault.Vault) {
	for _, c := range m.clusters {
		out = append(out, secret{c})
	}
	return out
}

func (m members) ids() (ids []string) {
	for _, v := range m.views {
		ids = append(ids, v.Cluster.ID)
	}
	return ids
}

func (m members) pairs(ctx context.Context) ([]cluster.Pair, error) {
	var answers []cluster.Answer
	var first error
	for i, c := range m.clusters {
		got, err := c.Ask(ctx, m.views[i].Cluster.ID)
		answers = append(answers, got...)
		if err != nil && first == nil {
			first = err
		}
	}
	pairs := cluster.Pairs(m.ids(), answers)
	if len(answers) > 0 {
		first = nil // the daemons that answer are enough: Pairs reports the clusters that have none
	}
	return pairs, first
}

func printPairs(a *cli.App, pairs []cluster.Pair) {
	p := a.Printer()
	for _, x := range pairs {
		if x.OK {
			p.Line("✓ %s → %s: handshake", x.From, x.To)
		} else {
			p.Line("✗ %s → %s: %s", x.From, x.To, cli.Clean(x.Why))
		}
	}
}
