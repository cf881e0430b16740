package fleet

import (
	"context"
	"errors"
	"slices"
	"testing"

	"strait.io/strait/clustermesh/authority"
)

// TestPinTogether: on the way to pins, no daemon is asked to refuse what is not signed while anything is
// not, and none that pins already hears a newcomer that it does not know.
func TestPinTogether(t *testing.T) {
	var known, heard, signing, met, signed, pinned, all bool
	demand := func(what string, is ...bool) error {
		if slices.Contains(is, false) {
			t.Errorf("%s: too early", what)
		}
		return nil
	}
	steps := pinSteps{
		write: func() error { known = true; return nil },
		join:  func() error { heard = true; return demand("join", known) },
		turnOn: func(value string) error {
			switch value {
			case "sign":
				signing = true
				return demand(value, known)
			case "pin":
				pinned = true
				return demand(value, signing, met, signed)
			}
			return errors.New("no such value: " + value)
		},
		meet: func() error { met = true; return demand("meet", heard) },
		// Some daemon takes its time: its records are signed only when that was waited for.
		signed:   func() error { signed = signing; return demand("signed", met) },
		followed: func() error { all = pinned; return nil },
	}
	if err := pinTogether(steps); err != nil || !all {
		t.Errorf("error %v; every daemon has the pins: %v", err, all)
	}
	steps.signed = func() error { return context.DeadlineExceeded }
	if pinned = false; !errors.Is(pinTogether(steps), context.DeadlineExceeded) || pinned {
		t.Errorf("not all was signed in time, and pins are in force: %v", pinned)
	}
}

// slowCluster is a cluster whose nodes are stated by the root that was there when that was waited for last.
type slowCluster struct {
	t      *testing.T
	pins   []authority.PublicKey
	stated [2]authority.PublicKey // of a node that is fast, and of one that is slow
	has    authority.PublicKey
	late   bool
}

func (c *slowCluster) pin(_ context.Context, roots ...authority.PublicKey) error {
	c.pins = roots
	c.check("pinned")
	return nil
}

func (c *slowCluster) give(_ context.Context, root authority.PrivateKey) error {
	c.has, c.stated[0] = root.Public(), root.Public()
	c.check("given")
	return nil
}

func (c *slowCluster) renewed(_ context.Context, root string) error {
	if root != c.has.Fingerprint() {
		c.t.Errorf("it waits for another root")
	}
	if c.late {
		return context.DeadlineExceeded
	}
	c.stated[1] = c.has
	return nil
}

// check demands that everything that counts is signed by a root that is pinned.
func (c *slowCluster) check(when string) {
	for _, by := range c.stated {
		if !slices.Contains(c.pins, by) {
			c.t.Errorf("%s: a node is not believed any more", when)
		}
	}
}

// TestReplaceRoot: while a root is replaced, each node is believed at each moment; and if a node does not get
// a statement of the new one in time, the old one stays pinned.
func TestReplaceRoot(t *testing.T) {
	old, next := authority.PrivateKey{1}, authority.PrivateKey{2}
	for _, late := range []bool{false, true} {
		c := &slowCluster{t: t, has: old.Public(), stated: [2]authority.PublicKey{old.Public(), old.Public()}, late: late}
		err := replaceRoot(t.Context(), c, old.Public(), next, func(string, ...any) {})
		want := []authority.PublicKey{next.Public()}
		if late {
			want = []authority.PublicKey{old.Public(), next.Public()}
		}
		if (err != nil) != late || !slices.Equal(c.pins, want) {
			t.Errorf("late %v: %v, %d roots are pinned", late, err, len(c.pins))
		}
	}
}
