package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"strait.io/strait/cli"
	"strait.io/strait/cli/check"
	"strait.io/strait/cli/checklist"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/cluster"
)

// checkUpgrade prints what an upgrade would change, and what is in its way or at risk. It changes
// nothing.
func checkUpgrade(ctx context.Context, a *cli.App, f installFlags) error {
	i, err := intend(ctx, f, true)
	if err != nil {
		return err
	}
	u := check.Upgrade{To: a.ThisVersion().Version, Pinned: i.pin != ""}
	changes, err := i.changes(ctx, a, &u)
	if err != nil {
		return unknown(err)
	}
	answers, err := i.Statuses(ctx)
	if err != nil {
		return unknown(err)
	}
	id, _ := i.values["cluster"].(string)
	u.Nodes, u.Others = asked(cmp.Or(id, i.Context), answers, fmt.Sprintf("see why: kubectl --context %s -n %s get pods -o wide", i.Context, i.Namespace))
	if a.Output == "table" {
		a.Printer().Line("%s: an upgrade to strait %s, with the image %s, would change:", i.Context, u.To, u.Image)
		printChanges(a, changes)
	}
	return checklist.Show(a, check.UpgradeChecks(u), a.Output)
}

// changes asks the API server what the upgrade would change. What it or the chart refuses is a
// finding.
func (i intent) changes(ctx context.Context, a *cli.App, u *check.Upgrade) (changes []cluster.Change, err error) {
	have, err := i.ReadBundle(ctx)
	if err != nil {
		return nil, err
	}
	docs, err := render(a, i.Cluster, i.values, *cmp.Or(have, &bundle.Bundle{Version: bundle.Version}))
	var usage *cli.ExitError
	if errors.As(err, &usage) {
		u.Refused = err
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	u.Image = daemonImage(docs)
	if changes, u.Refused = i.Apply(ctx, docs, true); u.Refused != nil {
		return changes, nil
	}
	gone, err := i.Prune(ctx, docs, true)
	for _, c := range changes {
		if c.Pods == cluster.PodsByHand {
			u.ByHand = append(u.ByHand, fmt.Sprintf("%s %s", c.Kind, c.Name))
		}
	}
	return append(changes, gone...), err
}

// asked returns the daemons of this cluster, and the versions of those of the others as these know
// them. Try is what to do about daemons that do not answer.
func asked(id string, answers []cluster.NodeStatus, try string) (own []check.Node, others map[string]string) {
	others = map[string]string{}
	for _, s := range answers {
		n := check.Node{Name: id + "/" + s.Node, Cluster: id, Status: s.Status}
		if s.Err != nil {
			n.Status, n.Error, n.Try = nil, s.Err.Error(), try
		}
		own = append(own, n)
		for _, o := range s.Nodes {
			if name := o.Cluster + "/" + o.Name; o.Cluster != id && !o.Dead {
				others[name] = cmp.Or(others[name], o.Version)
			}
		}
	}
	return own, others
}
