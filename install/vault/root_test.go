package vault

import (
	"errors"
	"slices"
	"testing"

	"strait.io/strait/clustermesh/authority"
)

// TestRootRotation: wherever a rotation is interrupted, and interrupted again, it continues with
// the same new root and ends as one that was not; and at each moment every daemon believes every
// other.
func TestRootRotation(t *testing.T) {
	steps := rotateRoot(t, 1000, 1000)
	if steps < 10 {
		t.Fatalf("a rotation of three clusters takes %d steps", steps)
	}
	for first := range steps {
		for second := range steps {
			rotateRoot(t, first, second)
		}
	}
}

// rotateRoot rotates the root of the second cluster in a world with two interruptions, and returns
// how many writes and waits there were.
func rotateRoot(t *testing.T, interruptions ...int) (steps int) {
	t.Helper()
	const own = 1
	w := newWorld(t, 0)
	before := slices.Clone(w.vaults)
	var root authority.PublicKey
	for _, left := range append(interruptions, 1000) {
		w.left = left
		r := RootRotation{Vaults: w.all(), Own: own, Generate: w.generate, Wait: w.wait, Report: func(string, ...any) {}}
		var err error
		if root, err = r.Run(t.Context()); err == nil {
			steps = left - w.left
			break
		}
		if !errors.Is(err, errInterrupted) {
			t.Fatalf("interrupted after %v: %v", interruptions, err)
		}
	}
	if w.kept == nil || root != *w.kept {
		t.Errorf("interrupted after %v: the new root is another one than at first", interruptions)
	}
	for i, f := range w.vaults {
		want := before[i].keys.Root.Public()
		if i == own {
			want = root
		}
		if f.keys.Root.Public() != want || f.keys.Next != nil {
			t.Errorf("interrupted after %v: %s has another root, or a copy of the next one", interruptions, f)
		}
		if roots := f.keys.Pins["b"].Roots; !slices.Equal(roots, []authority.PublicKey{root}) {
			t.Errorf("interrupted after %v: %s pins %d roots, or another one", interruptions, f, len(roots))
		}
	}
	return steps
}

// TestStepOfEarlierVersions: those kept no copy of the next root in a Secret, and a directory keeps
// none once the root is given.
func TestStepOfEarlierVersions(t *testing.T) {
	old, next := authority.PrivateKey{1}, authority.PrivateKey{2}
	keys := func(root authority.PrivateKey, next *authority.PrivateKey, roots ...authority.PublicKey) Keys {
		return Keys{Own: "a", Root: root, Next: next, Pins: authority.Pins{"a": {Cluster: "a", Roots: roots}}}
	}
	for _, c := range []struct {
		what string
		keys Keys
		want Step
	}{
		{"nothing began", keys(old, nil, old.Public()), Make},
		{"the new root is lost", keys(old, nil, old.Public(), next.Public()), Make},
		{"the new root is given", keys(next, nil, old.Public(), next.Public()), Forget},
		{"a copy of a former rotation", keys(next, &next, next.Public()), Clear},
	} {
		if got := c.keys.Step(); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// TestNoRoot: a cluster without a root key gets none by a rotation.
func TestNoRoot(t *testing.T) {
	w := newWorld(t, 1000)
	w.vaults[0].keys.Root = authority.PrivateKey{}
	r := RootRotation{Vaults: w.all(), Generate: w.generate, Wait: w.wait}
	if _, err := r.Run(t.Context()); err == nil || w.left != 1000 {
		t.Errorf("%v after %d steps", err, 1000-w.left)
	}
}
