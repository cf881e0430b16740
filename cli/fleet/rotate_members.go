package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
)

// rotation replaces the root of one of the clusters of some contexts.
type rotation struct {
	id       clustermesh.ClusterName
	clusters []*cluster.Cluster
	keys     []cluster.Keys
	pins     []authority.Pins
	own      int // which of them has the root
	app      *cli.App
}

// others returns the clusters that the rotated one pins and that are not among some, sorted.
func (r *rotation) others(ids []string) (out []string) {
	for c := range r.pins[r.own] {
		if !slices.Contains(ids, string(c)) {
			out = append(out, string(c))
		}
	}
	slices.Sort(out)
	return out
}

// readRotation reads the pins of all contexts. Each must pin the cluster, and one must be it.
func readRotation(ctx context.Context, a *cli.App, t target, contexts []string, id clustermesh.ClusterName) (*rotation, error) {
	r := &rotation{id: id, own: -1, app: a}
	var ids []string
	for i, name := range contexts {
		c, err := t.open(name)
		if err != nil {
			return nil, err
		}
		k, err := c.ReadKeys(ctx)
		if err != nil {
			return nil, err
		}
		_, pins, err := readKeys(k)
		own, idErr := c.ID(ctx)
		if err := errors.Join(err, idErr); err != nil {
			return nil, err
		}
		if _, pinned := pins[id]; !pinned {
			return nil, cli.UsageError("context %s does not pin cluster %s; strait clusterset connect does", c.Context, id)
		}
		if own == string(id) {
			r.own = i
		}
		ids = append(ids, own)
		r.clusters, r.keys, r.pins = append(r.clusters, c), append(r.keys, k), append(r.pins, pins)
	}
	if r.own < 0 {
		return nil, cli.UsageError("no context is that of cluster %s; give it, and those of all clusters that pin it", id)
	}
	if missing := r.others(ids); len(missing) > 0 {
		return nil, cli.UsageError("%s is pinned too, and would refuse what the new root signs: give its --context, or evict it first", cli.Some(missing, 5))
	}
	return r, nil
}

// pin has all clusters pin these roots, and waits until every daemon has followed.
func (r *rotation) pin(ctx context.Context, roots ...authority.PublicKey) error {
	for i, c := range r.clusters {
		p := r.pins[i][r.id]
		p.Roots = roots
		r.pins[i][r.id] = p
		r.keys[i].Pins = r.pins[i].Encode()
		if _, err := c.WriteKeys(ctx, r.keys[i]); err != nil {
			return err
		}
		if err := c.Nudge(ctx); err != nil {
			return err
		}
	}
	return followed(ctx, r.app, r.clusters, func(i int) authority.Pins { return r.pins[i] })
}

// renewed waits until every daemon of every cluster holds nothing of the rotated one any more for which
// another root signed.
func (r *rotation) renewed(ctx context.Context, root string) error {
	return until(ctx, "the old root still counts", func() string {
		return firstOf(ctx, r.clusters, func(l api.MemberList) []string { return l.OfOtherRoot(string(r.id), root) })
	})
}

// give has the rotated cluster sign with a root.
func (r *rotation) give(ctx context.Context, root authority.PrivateKey) error {
	r.keys[r.own].Root = []byte(root.Base64() + "\n")
	own := r.clusters[r.own]
	if _, err := own.WriteKeys(ctx, r.keys[r.own]); err != nil {
		return err
	}
	return own.Nudge(ctx)
}

// rootSteps are what it takes to replace a root. Each returns when every daemon has followed.
type rootSteps interface {
	pin(ctx context.Context, roots ...authority.PublicKey) error
	give(ctx context.Context, root authority.PrivateKey) error
	renewed(ctx context.Context, root string) error
}

var _ rootSteps = &rotation{}

// replaceRoot makes the steps. After each, all that counts is signed by a root that all pin.
func replaceRoot(ctx context.Context, s rootSteps, old authority.PublicKey, next authority.PrivateKey, report func(format string, args ...any)) error {
	print := next.Public().Fingerprint()
	if err := s.pin(ctx, old, next.Public()); err != nil {
		return err
	}
	report("the old root and the new one, %s, are pinned everywhere", print)
	if err := s.give(ctx, next); err != nil {
		return err
	}
	if err := s.renewed(ctx, print); err != nil {
		return err
	}
	report("the new root has signed all that counts")
	return s.pin(ctx, next.Public())
}

// rotateMembers replaces the root of a cluster. In each step, what was signed before it still counts.
func rotateMembers(ctx context.Context, a *cli.App, t target, contexts []string, id clustermesh.ClusterName) error {
	r, err := readRotation(ctx, a, t, contexts, id)
	if err != nil {
		return err
	}
	old, _, err := readKeys(r.keys[r.own])
	if err != nil {
		return err
	}
	next, err := authority.Generate(rand.Reader)
	if err != nil {
		return err
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	p, own := a.Printer(), r.clusters[r.own]
	report := func(format string, args ...any) {
		p.Line("%s: cluster %s: %s", own.Context, id, fmt.Sprintf(format, args...))
	}
	if err := replaceRoot(ctx, r, old.Public(), next, report); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s: the root of cluster %s is %s, and the old one counts nowhere\n", own.Context, id, next.Public().Fingerprint())
	return nil
}
