package vault

import (
	"context"
	"errors"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/gossipkey"
)

var errInterrupted = errors.New("interrupted")

// world is clusters with two daemons each: fast follows its vault at once, and slow when it is
// waited for.
type world struct {
	t      *testing.T
	vaults []*fake
	// left is how many writes and waits succeed before the next interruption.
	left int
	made int // keys
	// kept is the first new root that a vault held or pinned.
	kept *authority.PublicKey
}

// fake is a cluster with its vault.
type fake struct {
	w      *world
	keys   Keys
	gossip Gossip
	// What its daemons have: fast, slow.
	pins  [2]authority.Pins
	rings [2]gossipkey.Ring
	// by is the root that states each daemon.
	by [2]authority.PublicKey
}

func newWorld(t *testing.T, left int) *world {
	w := &world{t: t, left: left}
	pins := authority.Pins{}
	for i, id := range []clustermesh.ClusterName{"a", "b", "c"} {
		root := authority.PrivateKey{byte(i + 1)}
		pins[id] = authority.Pin{Cluster: id, Roots: []authority.PublicKey{root.Public()}}
		f := &fake{w: w, keys: Keys{Own: id, Root: root, Pins: pins}, gossip: Gossip{Ring: gossipkey.Ring{{1}}}}
		f.by = [2]authority.PublicKey{root.Public(), root.Public()}
		w.vaults = append(w.vaults, f)
	}
	for _, f := range w.vaults {
		f.pins = [2]authority.Pins{pins, pins}
		f.rings = [2]gossipkey.Ring{f.gossip.Ring, f.gossip.Ring}
	}
	return w
}

func (w *world) all() (out []Vault) {
	for _, f := range w.vaults {
		out = append(out, f)
	}
	return out
}

func (w *world) step() error {
	if w.left--; w.left < 0 {
		return errInterrupted
	}
	return nil
}

func (w *world) wait(_ context.Context, what string, behind func() string) error {
	if err := w.step(); err != nil {
		return err
	}
	for _, f := range w.vaults {
		f.follow(1)
	}
	w.check()
	if lag := behind(); lag != "" {
		w.t.Errorf("%s, although all follow: %s", what, lag)
	}
	return nil
}

func (w *world) keep(root authority.PublicKey) {
	if w.kept == nil && root != (authority.PrivateKey{2}).Public() {
		w.kept = &root
	}
}

func (w *world) generate() (k authority.PrivateKey, err error) {
	w.made++
	return authority.PrivateKey{100, byte(w.made)}, nil
}

func (w *world) generateGossip() (k gossipkey.Key, err error) {
	w.made++
	return gossipkey.Key{100, byte(w.made)}, nil
}

// check demands that every daemon believes every other, and that any two accept what the other
// sends.
func (w *world) check() {
	for _, f := range w.vaults {
		for _, other := range w.vaults {
			for _, ring := range f.rings {
				for _, used := range other.rings {
					if !slices.Contains(ring, used[0]) {
						w.t.Errorf("a daemon of %s does not accept what one of %s sends", f, other)
					}
				}
			}
			for _, by := range other.by {
				for _, pins := range f.pins {
					if !slices.Contains(pins[other.keys.Own].Roots, by) {
						w.t.Errorf("a daemon of %s does not believe one of %s", f, other)
					}
				}
			}
		}
	}
}

func (f *fake) follow(daemon int) {
	f.pins[daemon], f.by[daemon], f.rings[daemon] = f.keys.Pins, f.keys.Root.Public(), f.gossip.Ring
}

func (f *fake) String() string { return "cluster " + string(f.keys.Own) }

func (f *fake) ReadKeys(context.Context) (Keys, error) { return f.keys, nil }

func (f *fake) WriteKeys(_ context.Context, k Keys) error {
	if err := f.w.step(); err != nil {
		return err
	}
	if k.Next != nil {
		f.w.keep(k.Next.Public())
	}
	for _, root := range k.Pins["b"].Roots {
		f.w.keep(root)
	}
	f.keys = k
	f.follow(0)
	f.w.check()
	return nil
}

func (f *fake) ReadGossip(context.Context) (Gossip, error) { return f.gossip, nil }

func (f *fake) WriteGossip(_ context.Context, g Gossip) error {
	if err := f.w.step(); err != nil {
		return err
	}
	f.gossip = g
	f.follow(0)
	f.w.check()
	return nil
}

func (f *fake) Members(context.Context) (map[string]api.MemberList, error) {
	out := map[string]api.MemberList{}
	for i, node := range []string{"fast", "slow"} {
		var items []api.Member
		for id, p := range f.pins[i] {
			m := api.Member{Cluster: string(id), State: string(api.Joined), Pinned: true}
			for _, r := range p.Roots {
				m.Keys = append(m.Keys, r.Fingerprint())
			}
			items = append(items, m)
		}
		for _, other := range f.w.vaults {
			for j, name := range []string{"fast", "slow"} {
				m := api.Member{Cluster: string(other.keys.Own), Node: name, State: api.Alive, Root: other.by[j].Fingerprint()}
				if m.GossipKeys = other.rings[j].Fingerprints(); other == f && i == j {
					m.State = api.Self
				}
				items = append(items, m)
			}
		}
		out[node] = api.MemberList{Items: items}
	}
	return out, nil
}
