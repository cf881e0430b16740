package node

import (
	"testing"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/replica"
)

// TestQueryNeedsProof: a daemon that counts as heard although it proves nothing, because its node's record is
// of an earlier version, may not query; with the key of that record, it may.
func TestQueryNeedsProof(t *testing.T) {
	o, its := origin("west", "n2"), *seeded("key of west/n2")
	signed, err := authority.Statement{Cluster: o.Cluster, Node: o.Node, Key: its.Public(), NotBefore: 1, NotAfter: 2}.Sign(*root("west"))
	if err != nil {
		t.Fatal(err)
	}
	e := entry(t, o, placed(o, 0, "2"), at)
	raw, err := e.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	revoked, lax := pinned("west"), signing(config(origin("west", "n1"), at), pinned("west"))
	pin := revoked["west"]
	pin.Revoked = []string{its.Public().Fingerprint()}
	revoked["west"] = pin
	lax.Authority.Lax = true
	strict := func(pins authority.Pins) Config { return signing(config(origin("west", "n1"), at), pins) }
	for _, c := range []struct {
		what     string
		config   Config
		key      authority.PrivateKey
		believed bool
		may      bool
	}{
		{"another key", strict(pinned("west")), *seeded("key of mallory"), true, false},
		{"its key", strict(pinned("west")), its, true, true},
		{"its key, revoked", strict(revoked), its, false, false},
		{"only others are pinned", strict(pinned("east")), its, true, false},
		{"everyone is believed for now", lax, *seeded("key of mallory"), true, true},
		{"there are no pins", strict(nil), *seeded("key of mallory"), true, true},
	} {
		n := New(c.config, Saved{}, at)
		n.Publish(placed(n.cfg.Self, 0, "1"), at)
		n.replica.Receive(origin("nobody", "n1"), &replica.Snapshot{Entries: []replica.Entry{e.Sealed(authority.Seal(its, raw, signed))}})
		p := Peer{Peer: member.Peer{ID: member.ID{Origin: o, Boot: 7}, UID: "it"}, Key: c.key.Public()}
		if _, believed, err := n.Answered(p, verified(n, p), n.cfg.Bind.String(), at); err != nil || believed != c.believed {
			t.Errorf("%s: believed %v, %v", c.what, believed, err)
		}
		if err := n.Query(p, verified(n, p)); (err == nil) != c.may {
			t.Errorf("%s: may query: %v", c.what, err)
		}
		p.Origin = origin("east", "n2")
		if err := n.Query(p, verified(n, p)); err == nil {
			t.Errorf("%s: a node of another cluster may query", c.what)
		}
	}
}
