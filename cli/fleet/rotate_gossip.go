package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/install/cluster"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/gossipkey"
)

// rotateGossipHere makes the next step to replace the gossip key in a directory, if all daemons have
// made the one before.
func rotateGossipHere(ctx context.Context, a *cli.App, d keyDir) error {
	ring, next, err := d.gossipKeys()
	if err != nil {
		return err
	}
	list, err := cli.Ask(ctx, a, (*client.Client).Members)
	if err != nil {
		return fmt.Errorf("the daemon here knows who follows; run this where straitd runs: %w", err)
	}
	reported := list.GossipKeys()
	if err := allPublish(reported); err != nil {
		return err
	}
	p := a.Printer()
	for _, m := range list.Items {
		if m.Node != "" && !hasKey(reported, m) {
			p.Line("%s %s/%s is not heard: copy %s to it before it comes back", api.Warn, m.Cluster, m.Node, d.gossip())
		}
	}
	if lag := ring.Lagging(reported); len(lag) > 0 {
		return fmt.Errorf("these nodes do not have the keys of %s yet: %s; copy it to them, and do this again", d.gossip(), cli.Some(lag, 5))
	}
	if len(ring) == 1 && ring[0] == next {
		if err := os.Remove(d.nextGossip()); err != nil {
			return err
		}
		p.Line("the gossip key is %s on all %d nodes, and the old one counts nowhere", next.Fingerprint(), len(reported))
		return nil
	}
	ring = ring.Toward(next)
	err = durable.Replace(d.gossip(), func(f *os.File) error {
		_, err := f.WriteString(ring.Text())
		return err
	})
	if err != nil {
		return err
	}
	p.Line("%s", stepText(ring, next))
	p.Line("next: copy %s to all machines of all clusters; daemons follow without a restart", d.gossip())
	p.Line("then: strait clusterset rotate --gossip-key")
	return nil
}

func hasKey(reported map[string][]string, m api.Member) bool {
	_, has := reported[m.Cluster+"/"+m.Node]
	return has
}

// allPublish returns an error if a daemon does not publish which keys it has.
func allPublish(reported map[string][]string) error {
	var silent []string
	for node, keys := range reported {
		if len(keys) == 0 {
			silent = append(silent, node)
		}
	}
	if slices.Sort(silent); len(silent) > 0 {
		return fmt.Errorf("these daemons cannot have two gossip keys: %s; upgrade them first", cli.Some(silent, 5))
	}
	return nil
}

// stepText returns what a ring means.
func stepText(r gossipkey.Ring, next gossipkey.Key) string {
	switch {
	case len(r) == 1:
		return fmt.Sprintf("the gossip key is %s alone", next.Fingerprint())
	case r[0] == next:
		return fmt.Sprintf("the new gossip key %s is used, and the old one %s is still accepted", next.Fingerprint(), r[1].Fingerprint())
	}
	return fmt.Sprintf("the new gossip key %s is accepted beside %s", next.Fingerprint(), r[0].Fingerprint())
}

// gossipRotation replaces the gossip key of the clusters of some contexts.
type gossipRotation struct {
	clusters []*cluster.Cluster
	keys     []cluster.GossipKeys
	next     gossipkey.Key
}

// left returns how many steps a cluster has to make.
func (r *gossipRotation) left(i int) (n int) {
	for ring := r.keys[i].Ring; len(ring) > 1 || ring[0] != r.next; ring = ring.Toward(r.next) {
		n++
	}
	return n
}

// step moves the clusters that have most steps to make by one. It reports whether any had to.
func (r *gossipRotation) step() (moved bool) {
	most := 0
	for i := range r.keys {
		most = max(most, r.left(i))
	}
	for i := range r.keys {
		if most > 0 && r.left(i) == most {
			r.keys[i].Ring, moved = r.keys[i].Ring.Toward(r.next), true
		}
	}
	return moved
}

// choose takes the key of a rotation that was begun, or makes one.
func (r *gossipRotation) choose() error {
	made, err := gossipkey.Generate(rand.Reader)
	if err != nil {
		return err
	}
	begun := false
	for i, k := range r.keys {
		switch {
		case k.Next == nil:
		case begun && *k.Next != r.next:
			return fmt.Errorf("context %s: another key than in the other contexts is to replace the gossip key; remove gossip.key.next from one of the Secrets", r.clusters[i].Context)
		default:
			r.next, begun = *k.Next, true
		}
	}
	if !begun {
		r.next = made
	}
	var old []string
	for _, k := range r.keys {
		for _, key := range k.Ring {
			if f := key.Fingerprint(); key != r.next && !slices.Contains(old, f) {
				old = append(old, f)
			}
		}
	}
	if len(old) > 1 {
		return cli.UsageError("the contexts do not have one gossip key, but %s; connect them first: strait clusterset connect", strings.Join(old, " and "))
	}
	return nil
}

// write gives the daemons their keys, and waits until all have them.
func (r *gossipRotation) write(ctx context.Context, next *gossipkey.Key) error {
	for i, c := range r.clusters {
		r.keys[i].Next = next
		if err := c.WriteGossipKeys(ctx, r.keys[i]); err != nil {
			return err
		}
		if err := c.Nudge(ctx); err != nil {
			return err
		}
	}
	return r.wait(ctx)
}

// wait returns when all daemons have the keys of their Secret.
func (r *gossipRotation) wait(ctx context.Context) error {
	for {
		lag, err := r.lagging(ctx)
		if err != nil || lag == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return waitOver(fmt.Errorf("not every daemon has the gossip keys: %s: %w; give the same command again to go on", lag, context.Cause(ctx)))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// lagging names a daemon that has other keys than its Secret; "" if none has. The error is one that does
// not pass.
func (r *gossipRotation) lagging(ctx context.Context) (string, error) {
	for i, c := range r.clusters {
		lists, err := c.Members(ctx)
		if err != nil {
			return err.Error(), nil
		}
		reported := map[string][]string{}
		for node, list := range lists {
			for _, m := range list.Items {
				if m.State == api.Self {
					reported[c.Context+"/"+node] = m.GossipKeys
				}
			}
		}
		if err := allPublish(reported); err != nil {
			return "", err
		}
		if lag := r.keys[i].Ring.Lagging(reported); len(lag) > 0 {
			return cli.Some(lag, 5), nil
		}
	}
	return "", nil
}

// mustBeAll returns an error if a daemon hears a cluster that none of the contexts is of: it would be
// left behind.
func (r *gossipRotation) mustBeAll(ctx context.Context) error {
	var given, missing []string
	for _, c := range r.clusters {
		id, err := c.ID(ctx)
		if err != nil {
			return err
		}
		given = append(given, id)
	}
	for _, c := range r.clusters {
		lists, err := c.Members(ctx)
		if err != nil {
			return err
		}
		for _, list := range lists {
			for _, m := range list.Items {
				heard := m.Node == "" && m.State == string(api.Joined)
				if heard && !slices.Contains(given, m.Cluster) && !slices.Contains(missing, m.Cluster) {
					missing = append(missing, m.Cluster)
				}
			}
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		return cli.UsageError("%s would lose the others: give its --context too, or evict it first", cli.Some(missing, 5))
	}
	return nil
}

// rotateGossipMembers replaces the gossip key of the clusters of all contexts, in three steps. At each
// time, any two daemons have a key in common that both accept.
func rotateGossipMembers(ctx context.Context, a *cli.App, t target, contexts []string) error {
	r := &gossipRotation{}
	for _, name := range contexts {
		c, err := t.open(name)
		if err != nil {
			return err
		}
		k, err := c.ReadGossipKeys(ctx)
		if err != nil {
			return err
		}
		r.clusters, r.keys = append(r.clusters, c), append(r.keys, k)
	}
	if err := errors.Join(r.choose(), r.mustBeAll(ctx)); err != nil {
		return err
	}
	ctx, cancel := t.waiting(ctx)
	defer cancel()
	p := a.Printer()
	for err := r.wait(ctx); ; err = r.write(ctx, &r.next) {
		if err != nil {
			return err
		}
		if !r.step() {
			break
		}
		p.Line("%s", stepText(r.keys[0].Ring, r.next))
	}
	if err := r.write(ctx, nil); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "the gossip key of %s is %s, and the old one counts nowhere\n", strings.Join(contexts, ", "), r.next.Fingerprint())
	return nil
}
