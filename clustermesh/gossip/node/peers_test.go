package node

import (
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/replica"
)

// verified returns whether what a peer shows proves its key.
func verified(n *Node, p Peer) Shown {
	pins, generation := n.Pins()
	return Shown{Stated: pins.Proves(p.Origin, p.Key, p.Statement) == nil, Generation: generation}
}

// TestBelieve: which proof makes the daemon at the other end of a connection count as its node.
func TestBelieve(t *testing.T) {
	pins := pinned("west", "east", "north")
	o, key := origin("east", "n1"), *seeded("key of east/n1")
	state := func(o clustermesh.Origin, k authority.PrivateKey, root *authority.PrivateKey) []byte {
		s, err := authority.Statement{Cluster: o.Cluster, Node: o.Node, Key: k.Public(), NotBefore: 1, NotAfter: 2}.Sign(*root)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	mine := state(o, key, root("east"))
	record := func(proves bool) replica.Entry {
		c := placed(o, 1, "1")
		c.Node.Proves = proves
		e := entry(t, o, c, at)
		raw, err := e.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return e.Sealed(authority.Seal(key, raw, mine))
	}
	both, after, revoked := pinned("west", "east"), pinned("west", "east"), pinned("west", "east")
	pin := both["east"]
	pin.Roots = append(pin.Roots, root("east again").Public())
	both["east"] = pin
	pin.Roots = pin.Roots[1:]
	after["east"] = pin
	pin = revoked["east"]
	pin.Revoked = []string{key.Public().Fingerprint()}
	revoked["east"] = pin
	stranger := *seeded("key of mallory")
	older, proves := record(false), record(true)
	for _, c := range []struct {
		what   string
		pins   authority.Pins
		record *replica.Entry
		o      clustermesh.Origin
		key    authority.PrivateKey
		shows  []byte
		alive  bool
		counts uint64
	}{
		{"it shows its statement", pins, nil, o, key, mine, true, 0},
		{"it shows its statement, and there is its record", pins, &proves, o, key, mine, true, 0},
		{"the key of its record", pins, &proves, o, key, nil, true, 0},
		{"no statement yet", pins, nil, o, key, nil, false, 0},
		{"another key", pins, nil, o, stranger, mine, false, 0},
		{"another key, and there is its record", pins, &proves, o, stranger, mine, false, 1},
		{"another key, and no statement", pins, &proves, o, stranger, nil, false, 1},
		{"another root", pins, &proves, o, stranger, state(o, stranger, root("mallory")), false, 1},
		{"another node's statement", pins, &proves, o, stranger, state(origin("east", "n2"), stranger, root("east")), false, 1},
		{"a new key with a statement", pins, &proves, o, stranger, state(o, stranger, root("east")), true, 0},
		{"an older daemon", pins, &older, o, stranger, nil, true, 0},
		{"a cluster that is not pinned", pins, nil, origin("south", "n1"), stranger, nil, true, 0},
		{"nothing is pinned", nil, nil, o, stranger, nil, true, 0},
		{"the old root while both are pinned", both, nil, o, key, mine, true, 0},
		{"the new root while both are pinned", both, nil, o, key, state(o, key, root("east again")), true, 0},
		{"the old root when it is over", after, nil, o, key, mine, false, 0},
		{"revoked", revoked, nil, o, key, mine, false, 0},
		{"this node itself", pins, nil, origin("west", "n1"), stranger, nil, false, 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			n := New(signing(config(origin("west", "n1"), at), c.pins), Saved{}, at)
			n.Publish(placed(n.cfg.Self, 0, "1"), at)
			if c.record != nil {
				n.replica.Receive(origin("nobody", "n1"), &replica.Snapshot{Entries: []replica.Entry{*c.record}})
				if _, held := n.replica.Record(o); !held {
					t.Fatal("the record was refused")
				}
			}
			id := member.ID{Origin: c.o, Boot: 7}
			n.contacts.Join(id, n.cfg.Bind, at)
			p := Peer{Peer: member.Peer{ID: id, UID: "it"}, Key: c.key.Public(), Statement: c.shows}
			if _, believed, err := n.Answered(p, verified(n, p), n.cfg.Bind.String(), at); err != nil || believed != c.alive {
				t.Errorf("who dials it believes: %v, %v", believed, err)
			}
			if _, free := n.cfg.Owners.Belongs(c.o.Cluster, "another"); free != (c.pins != nil) {
				t.Errorf("the name of its cluster is free: %v", free)
			}
			s, err := n.Opened(p, verified(n, p), "192.0.2.66", at)
			if own := c.o == n.cfg.Self; (err != nil) != own {
				t.Fatalf("who is dialled: %v", err)
			} else if own {
				n.Tried(n.cfg.Bind, p.Peer, false, nil, at)
				if hasProblem(n, at, "two daemons use this node name") {
					t.Error("a peer that has the gossip key makes it seem that there are two of this node")
				}
				return
			}
			s.Receive(nil, at)
			if alive := n.contacts.Contact(c.o) == clustermesh.Alive; alive != c.alive {
				t.Errorf("alive: %v", alive)
			}
			if _, refused := n.Refused(); refused != 2*c.counts {
				t.Errorf("%d refused", refused)
			}
		})
	}
}

// TestUnprovenIsNowhereProven: a daemon whose record does not promise a proof is accepted without
// one. So that it answered somewhere does not prove that its node is there: a stranger with the
// gossip key can answer so.
func TestUnprovenIsNowhereProven(t *testing.T) {
	o, its := origin("east", "n1"), *seeded("key of east/n1")
	signed, err := authority.Statement{Cluster: o.Cluster, Node: o.Node, Key: its.Public(), NotBefore: 1, NotAfter: 2}.Sign(*root("east"))
	if err != nil {
		t.Fatal(err)
	}
	e := entry(t, o, placed(o, 1, "1"), at)
	raw, err := e.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key    authority.PrivateKey
		proven bool
	}{{*seeded("key of mallory"), false}, {its, true}} {
		n := New(signing(config(origin("west", "n1"), at), pinned("west", "east")), Saved{}, at)
		n.Publish(placed(n.cfg.Self, 0, "1"), at)
		n.replica.Receive(origin("nobody", "n1"), &replica.Snapshot{Entries: []replica.Entry{e.Sealed(authority.Seal(its, raw, signed))}})
		id := member.ID{Origin: o, Boot: 7}
		n.contacts.Join(id, n.cfg.Bind, at)
		p := Peer{Peer: member.Peer{ID: id, UID: "it"}, Key: c.key.Public()}
		_, believed, err := n.Answered(p, verified(n, p), n.cfg.Bind.String(), at)
		if where := n.State().Proven; err != nil || !believed || (where.Len() > 0) != c.proven {
			t.Errorf("with its key %v, accepted: %v, %v; it is proven at %v", c.proven, believed, err, where)
		}
	}
}

// TestBeliefChanges: what is known changes while a stream is open, and so does whether it counts.
func TestBeliefChanges(t *testing.T) {
	pins := pinned("west", "east")
	n := New(signing(config(origin("west", "n1"), at), pins), Saved{}, at)
	o, key := origin("east", "n1"), *seeded("key of east/n1")
	statement, err := authority.Statement{Cluster: "east", Node: "n1", Key: key.Public(), NotBefore: 1, NotAfter: 2}.Sign(*root("east"))
	if err != nil {
		t.Fatal(err)
	}
	now, id := at, member.ID{Origin: o, Boot: 7}
	n.contacts.Join(id, n.cfg.Bind, now)
	heard := func(when string, s *Session, want bool) {
		t.Helper()
		before := n.contacts.Heard()[o]
		now = now.Add(time.Second)
		s.Receive(nil, now)
		if got := n.contacts.Heard()[o] != before; got != want {
			t.Errorf("%s: it is heard: %v", when, got)
		}
	}
	silent := Peer{Peer: member.Peer{ID: id}, Key: key.Public()}
	s, err := n.Opened(silent, verified(n, silent), "192.0.2.66", now)
	if err != nil {
		t.Fatal(err)
	}
	heard("nothing is known of it", s, false)
	// An exchange with a peer that may be any daemon does not count as one with a peer that has everything.
	if s.Receive(&replica.Agree{}, now); n.replica.Synced() {
		t.Error("synced by a peer that is doubted")
	}
	e := entry(t, o, placed(o, 1, "1"), at)
	raw, err := e.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	s.Receive(&replica.Snapshot{Entries: []replica.Entry{e.Sealed(authority.Seal(key, raw, statement))}}, now)
	heard("its record came", s, true)
	if s.Receive(&replica.Agree{}, now); !n.replica.Synced() {
		t.Error("not synced by a peer that is believed")
	}
	s.Close(now)

	proof := Peer{Peer: member.Peer{ID: id}, Key: key.Public(), Statement: statement}
	shows, err := n.Opened(proof, verified(n, proof), "192.0.2.66", now)
	if err != nil {
		t.Fatal(err)
	}
	heard("it shows its statement", shows, true)
	after := pinned("west", "east")
	pin := after["east"]
	pin.Roots[0] = root("east again").Public()
	n.Repin(after, now)
	heard("another root is pinned", shows, false)
	n.Repin(pins, now)
	heard("the pins are as before", shows, true)
	revoking := clustermesh.Record{Origin: clustermesh.Origin{Cluster: "east"}, Stamp: clustermesh.Stamp{Epoch: uint64(now.UnixMilli()), Version: 1}}
	revoking.Content.Revoked = []string{key.Public().Fingerprint()}
	if e, err = replica.NewEntry(revoking); err != nil {
		t.Fatal(err)
	}
	if raw, err = e.Bytes(); err != nil {
		t.Fatal(err)
	}
	shows.Receive(&replica.Snapshot{Entries: []replica.Entry{e.Sealed(authority.Seal(*root("east"), raw, nil))}}, now)
	heard("its cluster revoked its key", shows, false)
}

// TestTwinProves: another daemon with this node's name and key, on a cloned machine, is reported.
func TestTwinProves(t *testing.T) {
	n := New(signing(config(origin("west", "n1"), at), pinned("west")), Saved{}, at)
	p := Peer{Peer: member.Peer{ID: member.ID{Origin: n.cfg.Self, Boot: 7}}, Key: seeded("key of west/n1").Public()}
	if _, err := n.Opened(p, verified(n, p), "192.0.2.66", at); err == nil || !hasProblem(n, at, "two daemons use this node name") {
		t.Errorf("%v, %v", err, n.Problems(at))
	}
}
