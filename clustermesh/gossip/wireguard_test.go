package gossip

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/key"
)

// tunnelsOf returns the WireGuard key of a node.
func tunnelsOf(o clustermesh.Origin) (k key.Private) {
	copy(k[:], "tunnels of "+o.String())
	return k
}

// proving returns the configuration of a daemon that proves its WireGuard key.
func proving(t *testing.T, c Config) Config {
	t.Helper()
	p, err := authority.ProveKey(bytes.NewReader(make([]byte, 64)), c.Self, c.Authority.Node.Public(), tunnelsOf(c.Self))
	if err != nil {
		t.Fatal(err)
	}
	c.Authority.Proof = p
	return c
}

// tunnelled is what a node with tunnels says: placed, with the WireGuard key of an origin.
func tunnelled(o clustermesh.Origin, n byte, number string, keyOf clustermesh.Origin) clustermesh.Content {
	c := placed(o, n, number)
	c.Node.PublicKey = tunnelsOf(keyOf).Public()
	return c
}

// TestStolenKey: a cluster with its root claims the WireGuard key of another one's node. Everybody sees that
// the owner alone proves it, with the owner's proof in the thief's statement, too.
func TestStolenKey(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east", "aevil")
	west := signing(config(origin("west", "n1")), pins)
	east := proving(t, signing(config(origin("east", "n1"), west.Bind), pins))
	evil := signing(config(origin("aevil", "n1"), west.Bind), pins)
	evil.Authority.Proof = east.Authority.Proof
	dw, de, dv := start(t, west), start(t, east), start(t, evil)
	de.Publish(tunnelled(east.Self, 1, "1", east.Self))
	dv.Publish(tunnelled(evil.Self, 2, "2", east.Self))
	eventually(t, "all know both", func() bool {
		return dw.said(east.Self) == 1 && dw.said(evil.Self) == 2 && dv.said(east.Self) == 1 && de.said(evil.Self) == 2
	})
	seen := func(when string) {
		t.Helper()
		for _, d := range []*daemon{dw, de, dv} {
			owner, thief := d.State().Records.Get(east.Self), d.State().Records.Get(evil.Self)
			if owner.Content.Node.PublicKey != thief.Content.Node.PublicKey {
				t.Fatalf("%s: at %s the thief has the key %s", when, d.cfg.Self, thief.Content.Node.PublicKey)
			}
			if !owner.KeyProven || thief.KeyProven {
				t.Errorf("%s: at %s the owner's key is proven %t, and the thief's %t", when, d.cfg.Self, owner.KeyProven, thief.KeyProven)
			}
		}
	}
	seen("without proof")

	lie := forged(t, evil.Self, tunnelled(evil.Self, 2, "3", east.Self))
	s := dv.Trust().Statements[evil.Self]
	s.Proof = east.Authority.Proof
	signed, err := s.Sign(*root("aevil"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := lie.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	dw.inject(lie.Sealed(authority.Seal(*seeded("key of aevil/n1"), raw, signed)))
	eventually(t, "all have that", func() bool { return dw.said(evil.Self) == 3 && de.said(evil.Self) == 3 })
	if w := dw.State().Records; !w.Get(east.Self).KeyProven || w.Get(evil.Self).KeyProven {
		t.Errorf("with a copied proof: the owner's key is proven %t, and the thief's %t", w.Get(east.Self).KeyProven, w.Get(evil.Self).KeyProven)
	}
}

// TestProofWithoutPins: who believes everybody takes nothing for proven, of this node neither.
func TestProofWithoutPins(t *testing.T) {
	pins := pinned("west", "east")
	west := proving(t, signing(config(origin("west", "n1")), pins))
	west.Authority.Lax = true
	east := proving(t, signing(config(origin("east", "n1"), west.Bind), pins))
	dw, de := start(t, west), start(t, east)
	dw.Publish(tunnelled(west.Self, 0, "1", west.Self))
	de.Publish(tunnelled(east.Self, 1, "2", east.Self))
	eventually(t, "they know each other", func() bool { return dw.said(east.Self) == 2 && de.said(west.Self) == 1 })
	if w := dw.State().Records; w.Get(west.Self).KeyProven || w.Get(east.Self).KeyProven {
		t.Error("without pins, keys are proven")
	}
	if e := de.State().Records; !e.Get(west.Self).KeyProven || !e.Get(east.Self).KeyProven {
		t.Error("with pins, keys are not proven")
	}
}

// TestStolenKeyIsNotStated: a node asks for a statement about the key of another node of its cluster, and
// about that of another cluster's node.
func TestStolenKeyIsNotStated(t *testing.T) {
	t.Parallel()
	pins := pinned("west", "east")
	keeps, thief := origin("west", "n2"), origin("west", "n1")
	c := proving(t, signing(config(keeps), pins))
	c.Attest = func(context.Context, authority.Request) error { return nil }
	c.Objects = func() (authority.Objects, bool) {
		machine, pods := placed(thief, 0, "").Node.Addresses, placed(thief, 0, "").Node.Prefixes
		return authority.Objects{All: true, Nodes: []authority.Holder{{Name: keeps.Node}, {Name: thief.Node, Addresses: machine, PodCIDRs: pods}}}, true
	}
	keeper := start(t, c)
	own := tunnelled(keeps, 0, "1", keeps)
	own.Node.Addresses, own.Node.Prefixes, own.Endpoints = nil, nil, nil
	keeper.Publish(own)
	eastern := proving(t, signing(config(origin("east", "n1"), c.Bind), pins))
	start(t, eastern).Publish(tunnelled(eastern.Self, 1, "2", eastern.Self))
	eventually(t, "the signer knows the owners", func() bool { return keeper.said(eastern.Self) == 2 })
	asks := start(t, following(config(thief, c.Bind), pins))
	for i, owner := range []clustermesh.Origin{keeps, eastern.Self} {
		number := fmt.Sprint(10 + i)
		asks.Publish(tunnelled(thief, 0, number, owner))
		eventually(t, "the thief's record arrives", func() bool { return keeper.said(thief) == 10+i })
		r := keeper.State().Records.Get(thief)
		if !r.Content.Node.PublicKey.IsZero() || r.KeyProven {
			t.Errorf("the thief is stated to have the key %s of %s", r.Content.Node.PublicKey, owner)
		}
		refused := "that is the key of node " + owner.String()
		eventually(t, "both say so", func() bool { return asks.hasProblem(refused) && keeper.hasProblem(refused) })
	}
}
