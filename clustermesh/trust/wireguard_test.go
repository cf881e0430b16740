package trust

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/key"
)

// TestUnprovenStatement: a statement of the version before, without the proof of the key, is renewed soon.
func TestUnprovenStatement(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	n := tunnelled(self, 0, "1", self).Node
	for _, follows := range []bool{false, true} {
		c := proving(t, self, signing(self, pinned("west")))
		if follows {
			c.Root = nil
		}
		g := New(c, self)
		older := g.describe(n)
		if !older.KeyProven {
			t.Fatal("the node proves none")
		}
		older.Proof, older.KeyProven = key.Signature{}, false
		older = older.Signed(now)
		older.Root = root("west").Public()
		signed, err := older.Sign(*root("west"))
		if err != nil {
			t.Fatal(err)
		}
		g.current = Signed{older, signed, now}
		g.wanted, g.requested = g.describe(n), g.describe(n)
		if follows {
			if g.Requests(now.Add(time.Second)) || !g.Requests(now.Add(Lacking+time.Second)) {
				t.Error("the signer is asked at once, or not soon")
			}
			continue
		}
		if !g.outdated(now) || !g.update(t, n, now) || !g.current.KeyProven || g.outdated(now) {
			t.Errorf("stated: %+v", g.current.Statement)
		}
		if signed = slices.Clone(g.current.Bytes); !g.update(t, n, now) || !bytes.Equal(g.current.Bytes, signed) {
			t.Error("it is signed again although none changed")
		}
		if s, err := authority.OpenStatement(g.current.Bytes, pinned("west")); err != nil || !s.KeyProven {
			t.Errorf("others read %+v, %v", s, err)
		}
	}
}

// TestNewKey: a proof of a key that is not this node's any more is not shown, and a new one is.
func TestNewKey(t *testing.T) {
	self := node("west", "n1")
	g := New(proving(t, self, signing(self, pinned("west"))), self)
	n := tunnelled(self, 0, "1", node("west", "n9")).Node
	if w := g.describe(n); w.KeyProven || w.Proof != (key.Signature{}) {
		t.Errorf("wanted: %+v", w)
	}
	if w := g.describe(placed(self, 0, "1").Node); w.Proof != (key.Signature{}) {
		t.Errorf("wanted without a key: %+v", w)
	}
}
