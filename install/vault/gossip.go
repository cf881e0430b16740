package vault

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/gossipkey"
)

// GossipRotation replaces the gossip key of the clusters of all vaults, in three steps. At each
// time, any two daemons have a key in common that both accept.
type GossipRotation struct {
	Vaults   []Vault
	Generate func() (gossipkey.Key, error)
	Wait     Wait
	// Report is told what is done.
	Report func(format string, args ...any)

	keys []Gossip // of the vaults
	next gossipkey.Key
}

// Run makes the steps that are left, and returns the new key.
func (r *GossipRotation) Run(ctx context.Context) (next gossipkey.Key, err error) {
	r.keys = make([]Gossip, len(r.Vaults))
	for i, v := range r.Vaults {
		if r.keys[i], err = v.ReadGossip(ctx); err != nil {
			return next, err
		}
	}
	if err := r.choose(); err != nil {
		return next, err
	}
	for err := r.followed(ctx); ; err = r.write(ctx, &r.next) {
		if err != nil {
			return next, err
		}
		if !r.step() {
			break
		}
		r.Report("%s", GossipText(r.keys[0].Ring, r.next))
	}
	return r.next, r.write(ctx, nil)
}

// choose takes the key of a rotation that was begun, or makes one.
func (r *GossipRotation) choose() (err error) {
	begun := false
	for i, k := range r.keys {
		switch {
		case k.Next == nil:
		case begun && *k.Next != r.next:
			return fmt.Errorf("%s: another key than in the other contexts is to replace the gossip key; remove gossip.key.next from one of the Secrets", r.Vaults[i])
		default:
			r.next, begun = *k.Next, true
		}
	}
	if !begun {
		if r.next, err = r.Generate(); err != nil {
			return err
		}
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
		return Misuse("the contexts do not have one gossip key, but " + strings.Join(old, " and ") + "; connect them first: strait clusterset connect")
	}
	return nil
}

// left returns how many steps a cluster has to make.
func (r *GossipRotation) left(i int) (n int) {
	for ring := r.keys[i].Ring; len(ring) > 1 || ring[0] != r.next; ring = ring.Toward(r.next) {
		n++
	}
	return n
}

// step moves the clusters that have most steps to make by one. It reports whether any had to.
func (r *GossipRotation) step() (moved bool) {
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

// write gives the daemons their keys, and waits until all have them.
func (r *GossipRotation) write(ctx context.Context, next *gossipkey.Key) error {
	for i, v := range r.Vaults {
		r.keys[i].Next = next
		if err := v.WriteGossip(ctx, r.keys[i]); err != nil {
			return err
		}
	}
	return r.followed(ctx)
}

// followed waits until every daemon has the keys of its vault. A daemon that cannot have two keys
// ends it.
func (r *GossipRotation) followed(ctx context.Context) error {
	var never error
	err := r.Wait(ctx, "not every daemon has the gossip keys", func() (behind string) {
		behind, never = r.lagging(ctx)
		return behind
	})
	if never != nil {
		return never
	}
	return err
}

// lagging names a daemon that has other keys than its vault; "" if none has. The error is one that
// does not pass.
func (r *GossipRotation) lagging(ctx context.Context) (string, error) {
	for i, v := range r.Vaults {
		lists, err := v.Members(ctx)
		if err != nil {
			return err.Error(), nil
		}
		reported := map[string][]string{}
		for node, list := range lists {
			for _, m := range list.Items {
				if m.State == api.Self {
					reported[v.String()+"/"+node] = m.GossipKeys
				}
			}
		}
		if err := AllPublish(reported); err != nil {
			return "", err
		}
		if lag := r.keys[i].Ring.Lagging(reported); len(lag) > 0 {
			return some(lag), nil
		}
	}
	return "", nil
}

// Unnamed returns the clusters that a daemon hears and that are none of these, sorted: they would
// be left behind.
func Unnamed(ctx context.Context, vaults []Vault, named []string) (out []string, err error) {
	for _, v := range vaults {
		lists, err := v.Members(ctx)
		if err != nil {
			return nil, err
		}
		for _, list := range lists {
			for _, m := range list.Items {
				heard := m.Node == "" && m.State == string(api.Joined)
				if heard && !slices.Contains(named, m.Cluster) && !slices.Contains(out, m.Cluster) {
					out = append(out, m.Cluster)
				}
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// AllPublish returns an error if a daemon does not publish which gossip keys it has.
func AllPublish(reported map[string][]string) error {
	var silent []string
	for _, node := range slices.Sorted(maps.Keys(reported)) {
		if len(reported[node]) == 0 {
			silent = append(silent, node)
		}
	}
	if len(silent) > 0 {
		return fmt.Errorf("these daemons cannot have two gossip keys: %s; upgrade them first", some(silent))
	}
	return nil
}

// GossipText describes a ring for people.
func GossipText(r gossipkey.Ring, next gossipkey.Key) string {
	switch {
	case len(r) == 1:
		return fmt.Sprintf("the gossip key is %s alone", next.Fingerprint())
	case r[0] == next:
		return fmt.Sprintf("the new gossip key %s is used, and the old one %s is still accepted", next.Fingerprint(), r[1].Fingerprint())
	}
	return fmt.Sprintf("the new gossip key %s is accepted beside %s", next.Fingerprint(), r[0].Fingerprint())
}
