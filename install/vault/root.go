package vault

import (
	"context"
	"fmt"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
)

// Step is the next step to replace the root of a cluster. The vault of the cluster alone decides
// it, so that an interrupted rotation continues with the same key.
type Step string

// The steps, in their order.
const (
	// Make the new key, and keep it beside the root.
	Make Step = "make"
	// PinBoth roots, in all clusters.
	PinBoth Step = "pin both"
	// Give the cluster the new root to sign with.
	Give Step = "give"
	// Forget the old root: pin the new one alone, in all clusters.
	Forget Step = "forget"
	// Clear the vault of the copy of the new key.
	Clear Step = "clear"
)

// Step returns the next step. The cluster's own vault is the last that pins, so its pins are those
// of all.
func (k Keys) Step() Step {
	roots := k.Pins[k.Own].Roots
	switch {
	case k.Next == nil && len(roots) == 2 && roots[1] == k.Root.Public():
		return Forget // a directory keeps no copy once the root is given
	case k.Next == nil:
		return Make
	case !slices.Contains(roots, k.Next.Public()):
		return PinBoth
	case k.Root != *k.Next:
		return Give
	case len(roots) > 1:
		return Forget
	}
	return Clear
}

// Both returns the roots to pin while one replaces the other.
func (k Keys) Both() []authority.PublicKey {
	return []authority.PublicKey{k.Root.Public(), k.Next.Public()}
}

// WithNext returns the keys with a key that replaces the root, if they have none.
func (k Keys) WithNext(generate func() (authority.PrivateKey, error)) (Keys, error) {
	if k.Next != nil {
		return k, nil
	}
	next, err := generate()
	k.Next = &next
	return k, err
}

// Given returns the keys with the new root in place of the old one.
func (k Keys) Given() Keys {
	k.Root = *k.Next
	return k
}

// Pinning returns the keys with these roots pinned for the cluster with this id.
func (k Keys) Pinning(id clustermesh.ClusterName, roots ...authority.PublicKey) Keys {
	k.Pins = withRoots(k.Pins, id, roots...)
	return k
}

// RootRotation replaces the root of one cluster.
type RootRotation struct {
	// Vaults are those of all clusters that pin it, Own is the index of its own.
	Vaults   []Vault
	Own      int
	Generate func() (authority.PrivateKey, error)
	Wait     Wait
	// Report is told what is done.
	Report func(format string, args ...any)

	keys []Keys // of the vaults
}

// Run makes the steps that are left, and returns the new root. After each, all that counts is
// signed by a root that all clusters pin. It waits before a step until every daemon has followed
// the one before.
func (r *RootRotation) Run(ctx context.Context) (root authority.PublicKey, err error) {
	r.keys = make([]Keys, len(r.Vaults))
	for i, v := range r.Vaults {
		if r.keys[i], err = v.ReadKeys(ctx); err != nil {
			return root, err
		}
	}
	if r.keys[r.Own].Root == (authority.PrivateKey{}) {
		return root, fmt.Errorf("%s has no root key to replace", r.Vaults[r.Own])
	}
	for {
		step := r.keys[r.Own].Step()
		if err := r.make(ctx, step); err != nil {
			return root, err
		}
		if step == Clear {
			return r.keys[r.Own].Root.Public(), nil
		}
	}
}

func (r *RootRotation) make(ctx context.Context, step Step) (err error) {
	own := r.keys[r.Own]
	switch step {
	case Make:
		if own, err = own.WithNext(r.Generate); err != nil {
			return err
		}
		return r.write(ctx, r.Own, own)
	case PinBoth:
		return r.pin(ctx, own.Both()...)
	case Give:
		if err := r.followed(ctx); err != nil {
			return err
		}
		r.Report("the old root and the new one, %s, are pinned everywhere", own.Next.Public().Fingerprint())
		return r.write(ctx, r.Own, own.Given())
	case Forget:
		if err := r.renewed(ctx, own); err != nil {
			return err
		}
		r.Report("the new root has signed all that counts")
		return r.pin(ctx, own.Root.Public())
	}
	if err := r.followed(ctx); err != nil {
		return err
	}
	own.Next = nil
	return r.write(ctx, r.Own, own)
}

// pin has all vaults pin these roots of the cluster, its own at last.
func (r *RootRotation) pin(ctx context.Context, roots ...authority.PublicKey) error {
	id := r.keys[r.Own].Own
	for i, k := range r.keys {
		if i != r.Own {
			if err := r.write(ctx, i, k.Pinning(id, roots...)); err != nil {
				return err
			}
		}
	}
	return r.write(ctx, r.Own, r.keys[r.Own].Pinning(id, roots...))
}

func (r *RootRotation) write(ctx context.Context, i int, k Keys) error {
	if err := r.Vaults[i].WriteKeys(ctx, k); err != nil {
		return err
	}
	r.keys[i] = k
	return nil
}

func (r *RootRotation) followed(ctx context.Context) error {
	return r.Wait(ctx, "not every daemon has the pins", func() string {
		return Lagging(ctx, r.Vaults, func(i int) authority.Pins { return r.keys[i].Pins })
	})
}

// renewed waits until no daemon holds anything of the cluster that counts by another root.
func (r *RootRotation) renewed(ctx context.Context, own Keys) error {
	return r.Wait(ctx, "the old root still counts", func() string {
		return FirstOf(ctx, r.Vaults, func(l api.MemberList) []string {
			return l.OfOtherRoot(string(own.Own), own.Root.Public().Fingerprint())
		})
	})
}
