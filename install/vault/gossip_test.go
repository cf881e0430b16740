package vault

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/internal/gossipkey"
)

// TestGossipRotationInterrupted: wherever it is interrupted, it continues with the same key; and at
// each moment any two daemons understand each other.
func TestGossipRotationInterrupted(t *testing.T) {
	rotate := func(left int) (steps int) {
		w := newWorld(t, left)
		var next gossipkey.Key
		for runs := 1; ; runs++ {
			r := GossipRotation{Vaults: w.all(), Generate: w.generateGossip, Wait: w.wait, Report: func(string, ...any) {}}
			var err error
			before := w.left
			if next, err = r.Run(t.Context()); err == nil {
				steps = before - w.left
				break
			}
			if !errors.Is(err, errInterrupted) || runs > 1 {
				t.Fatalf("interrupted after %d steps: %v", left, err)
			}
			w.left = 1000
		}
		for _, f := range w.vaults {
			if !slices.Equal(f.gossip.Ring, gossipkey.Ring{next}) || f.gossip.Next != nil {
				t.Errorf("interrupted after %d steps: %s has not the next key alone", left, f)
			}
		}
		return steps
	}
	steps := rotate(1000)
	for left := range steps {
		rotate(left)
	}
}

// TestGossipRotation: clusters that an interrupted rotation left at different steps go on together,
// the last first. At no time are two of them without a key that both accept.
func TestGossipRotation(t *testing.T) {
	a, b := gossipkey.Key{1}, gossipkey.Key{2}
	for name, begin := range map[string][]gossipkey.Ring{
		"from the start":               {{a}, {a}},
		"one accepts the next":         {{a}, {a, b}},
		"one uses the next":            {{b, a}, {a, b}},
		"one has the next alone":       {{b, a}, {b}},
		"all have it, but did not say": {{b}, {b}},
	} {
		r := &GossipRotation{next: b}
		for _, ring := range begin {
			r.keys = append(r.keys, Gossip{Ring: ring})
		}
		steps := 0
		for ; r.step(); steps++ {
			one, two := r.keys[0].Ring, r.keys[1].Ring
			if !slices.Contains(one, two[0]) || !slices.Contains(two, one[0]) {
				t.Errorf("%s: after %d steps one does not accept what the other uses", name, steps+1)
			}
		}
		if steps > 3 || !slices.Equal(r.keys[0].Ring, gossipkey.Ring{b}) || !slices.Equal(r.keys[1].Ring, gossipkey.Ring{b}) {
			t.Errorf("%s: %d steps, not to the next key alone", name, steps)
		}
	}
}

// TestGossipRotationChoosesTheNextKey: the one of a rotation that was begun, or else a new one.
// Clusters that have nothing in common are not joined by it.
func TestGossipRotationChoosesTheNextKey(t *testing.T) {
	a, b, c := gossipkey.Key{1}, gossipkey.Key{2}, gossipkey.Key{3}
	w := newWorld(t, 0)
	rotation := func(keys ...Gossip) *GossipRotation {
		return &GossipRotation{Vaults: w.all(), Generate: w.generateGossip, keys: keys}
	}
	fresh := rotation(Gossip{Ring: gossipkey.Ring{a}})
	if err := fresh.choose(); err != nil || fresh.next == a || fresh.next == (gossipkey.Key{}) {
		t.Errorf("a fresh rotation: %v", err)
	}
	begun := rotation(Gossip{Ring: gossipkey.Ring{a}}, Gossip{Ring: gossipkey.Ring{a, b}, Next: &b})
	if err := begun.choose(); err != nil || begun.next != b {
		t.Errorf("one that was begun: %v", err)
	}
	for message, r := range map[string]*GossipRotation{
		"another key": rotation(Gossip{Ring: gossipkey.Ring{a, c}, Next: &c}, Gossip{Ring: gossipkey.Ring{a, b}, Next: &b}),
		"connect":     rotation(Gossip{Ring: gossipkey.Ring{a}}, Gossip{Ring: gossipkey.Ring{c}}),
	} {
		if err := r.choose(); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("want an error with %q: %v", message, err)
		}
	}
}
