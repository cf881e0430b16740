package gossip

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/replica"
)

// TestImpostor: whoever has the gossip key and claims to be a node that is down, in a later life too,
// does not make it alive, and is seen. The node itself is alive when it returns, hears what others say,
// and is heard, though the impostor is there still.
func TestImpostor(t *testing.T) {
	pins := pinned("west", "east")
	west := signing(config(node("west", "n1")), pins)
	east := signing(config(node("east", "n1"), west.Bind), pins)
	dw, de := start(t, west), start(t, east)
	dw.tell(0, 1)
	de.tell(1, 2)
	both := func() bool {
		return dw.contact(east.Self) == clustermesh.Alive && de.contact(west.Self) == clustermesh.Alive
	}
	eventually(t, "they hear each other", func() bool { return both() && dw.said(east.Self) == 2 && de.said(west.Self) == 1 })
	if n := dw.Refused()["identity"] + de.Refused()["identity"]; n > 0 {
		t.Errorf("%d refused among honest daemons", n)
	}

	// Its life begins later than any that the node itself can have in this test.
	later := config(east.Self, west.Bind)
	later.StateDir = t.TempDir()
	save(t, later.StateDir, ahead9(t, east.Self))
	start(t, later).say(3)
	eventually(t, "the impostor is there", func() bool { return dw.Refused()["identity"] > 0 && len(at(dw, east.Self)) == 2 })
	de.stop()
	eventually(t, "the node is gone", func() bool { return slices.Equal(at(dw, east.Self), []string{later.Bind.String()}) })
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c := dw.contact(east.Self); c == clustermesh.Alive {
			t.Fatal("the impostor made the node alive")
		}
	}
	if !dw.hasProblem("cluster east", "claims to be one of its nodes", "for example east/n1") {
		t.Errorf("nobody says so: %v", dw.Problems())
	}

	de = start(t, east)
	de.tell(1, 4)
	eventually(t, "the node is back", func() bool { return both() && dw.said(east.Self) == 4 })
	dw.tell(0, 5)
	eventually(t, "it hears what others say", func() bool { return de.said(west.Self) == 5 })
	for o, s := range dw.Trust().Statements {
		if o == east.Self && s.Key != seeded("key of east/n1").Public() {
			t.Errorf("the impostor's key is believed")
		}
	}
}

// ahead9 is a record from almost ten minutes ahead: a daemon that finds it as its own begins a life after it.
func ahead9(t *testing.T, o clustermesh.Origin) replica.Entry {
	t.Helper()
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: uint64(time.Now().Add(9 * time.Minute).UnixNano()), Version: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func save(t *testing.T, dir string, e replica.Entry) {
	t.Helper()
	if err := saveState(t.Context(), dir, []replica.Entry{e}); err != nil {
		t.Fatal(err)
	}
}

// at returns at which addresses a node is a member.
func at(d *daemon, o clustermesh.Origin) (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.contacts.Members(), o) {
		return nil
	}
	for _, a := range d.contacts.Duplicates(time.Now().Add(time.Hour))[o] {
		out = append(out, a.String())
	}
	if out == nil {
		out = []string{d.contacts.Addr(o).String()}
	}
	slices.Sort(out)
	return out
}

// TestBelieve: which proof makes the daemon at the other end of a connection count as its node.
func TestBelieve(t *testing.T) {
	pins := pinned("west", "east", "north")
	o, key := node("east", "n1"), *seeded("key of east/n1")
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
		e := forged(t, o, c)
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
		{"another node's statement", pins, &proves, o, stranger, state(node("east", "n2"), stranger, root("east")), false, 1},
		{"a new key with a statement", pins, &proves, o, stranger, state(o, stranger, root("east")), true, 0},
		{"an older daemon", pins, &older, o, stranger, nil, true, 0},
		{"a cluster that is not pinned", pins, nil, node("south", "n1"), stranger, nil, true, 0},
		{"nobody is pinned", nil, nil, o, stranger, nil, true, 0},
		{"the old root while both are pinned", both, nil, o, key, mine, true, 0},
		{"the new root while both are pinned", both, nil, o, key, state(o, key, root("east again")), true, 0},
		{"the old root when it is over", after, nil, o, key, mine, false, 0},
		{"revoked", revoked, nil, o, key, mine, false, 0},
		{"this node itself", pins, nil, node("west", "n1"), stranger, nil, false, 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			g, err := New(signing(config(node("west", "n1")), c.pins))
			if err != nil {
				t.Fatal(err)
			}
			g.Publish(placed(g.cfg.Self, 0, "1"))
			d := &daemon{Gossip: g, t: t}
			if c.record != nil {
				d.inject(*c.record)
				if _, held := d.State().Records[o]; !held {
					t.Fatal("the record was refused")
				}
			}
			id := member.ID{Origin: c.o, Boot: 7}
			g.contacts.Join(id, g.cfg.Bind, time.Now())
			p := stream.Peer{Peer: member.Peer{ID: id, UID: "it"}, Key: stream.Key(c.key.Public()), Statement: c.shows}
			if believed, err := (host{g}).Admit(p, g.cfg.Bind.String()); err != nil || believed != c.alive {
				t.Errorf("who dials it believes: %v, %v", believed, err)
			}
			if _, free := g.clusters.belongs(c.o.Cluster, "another"); free != (c.pins != nil) {
				t.Errorf("the name of its cluster is free: %v", free)
			}
			s, err := host{g}.Accept(p, "192.0.2.66")
			if own := c.o == g.cfg.Self; (err != nil) != own {
				t.Fatalf("who is dialled: %v", err)
			} else if own {
				g.met(g.cfg.Bind, p, nil)
				if d.hasProblem("two daemons use this node name") {
					t.Error("whoever has the gossip key makes it seem that there are two of this node")
				}
				return
			}
			if err := s.Receive(nil); err != nil {
				t.Fatal(err)
			}
			if alive := g.contacts.Contact(c.o) == clustermesh.Alive; alive != c.alive {
				t.Errorf("alive: %v", alive)
			}
			if n := g.Refused()["identity"]; n != 2*c.counts {
				t.Errorf("%d refused", n)
			}
		})
	}
}

// TestBeliefChanges: what is known changes while a stream is open, and so does whether it counts.
func TestBeliefChanges(t *testing.T) {
	pins := pinned("west", "east")
	g, err := New(signing(config(node("west", "n1")), pins))
	if err != nil {
		t.Fatal(err)
	}
	o, key := node("east", "n1"), *seeded("key of east/n1")
	statement, err := authority.Statement{Cluster: "east", Node: "n1", Key: key.Public(), NotBefore: 1, NotAfter: 2}.Sign(*root("east"))
	if err != nil {
		t.Fatal(err)
	}
	now, id := time.Now(), member.ID{Origin: o, Boot: 7}
	g.contacts.Join(id, g.cfg.Bind, now)
	heard := func(when string, s stream.Session, want bool) {
		t.Helper()
		before := g.contacts.Heard()[o]
		if err := s.Receive(nil); err != nil {
			t.Fatal(err)
		}
		if got := g.contacts.Heard()[o] != before; got != want {
			t.Errorf("%s: it is heard: %v", when, got)
		}
	}
	s, err := host{g}.Accept(stream.Peer{Peer: member.Peer{ID: id}, Key: stream.Key(key.Public())}, "192.0.2.66")
	if err != nil {
		t.Fatal(err)
	}
	heard("nothing is known of it", s, false)
	// An exchange with somebody who may be anybody does not count as one with somebody who has everything.
	agree, err := replica.Encode(&replica.Agree{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Receive(agree); err != nil || g.replica.Synced() {
		t.Errorf("synced by a peer that is doubted: %v, %v", g.replica.Synced(), err)
	}
	e := forged(t, o, placed(o, 1, "1"))
	raw, err := e.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	push, err := replica.Encode(&replica.Snapshot{Entries: []replica.Entry{e.Sealed(authority.Seal(key, raw, statement))}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Receive(push); err != nil {
		t.Fatal(err)
	}
	heard("its record came", s, true)
	if err := s.Receive(agree); err != nil || !g.replica.Synced() {
		t.Errorf("not synced by a peer that is believed: %v", err)
	}
	s.Close()

	shows, err := host{g}.Accept(stream.Peer{Peer: member.Peer{ID: id}, Key: stream.Key(key.Public()), Statement: statement}, "192.0.2.66")
	if err != nil {
		t.Fatal(err)
	}
	heard("it shows its statement", shows, true)
	after := pinned("west", "east")
	pin := after["east"]
	pin.Roots[0] = root("east again").Public()
	g.Repin(after)
	heard("another root is pinned", shows, false)
	g.Repin(pins)
	heard("the pins are as before", shows, true)
}

// TestTwinProves: another daemon with this node's name and key, on a cloned machine, is reported.
func TestTwinProves(t *testing.T) {
	g, err := New(signing(config(node("west", "n1")), pinned("west")))
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{Gossip: g, t: t}
	p := stream.Peer{Peer: member.Peer{ID: member.ID{Origin: g.cfg.Self, Boot: 7}}, Key: stream.Key(seeded("key of west/n1").Public())}
	if _, err := (host{g}).Accept(p, "192.0.2.66"); err == nil || !d.hasProblem("two daemons use this node name") {
		t.Errorf("%v, %v", err, d.Problems())
	}
}

// TestLongStatements: a node with many prefixes is heard, whether its statement has room in the handshake
// or not.
func TestLongStatements(t *testing.T) {
	pins := pinned("west", "east")
	west := start(t, signing(config(node("west", "n1")), pins))
	west.tell(0, 1)
	for i, n := range []int{700, 900} {
		o := node("east", fmt.Sprint("n", i))
		east := start(t, signing(config(o, west.cfg.Bind), pins))
		c := placed(o, 1, "2")
		for p := range n {
			c.Node.Prefixes = append(c.Node.Prefixes, netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(p >> 8), 15: byte(p)}), 128))
		}
		east.Publish(c)
		eventually(t, "they hear each other", func() bool {
			return west.contact(o) == clustermesh.Alive && east.contact(west.cfg.Self) == clustermesh.Alive && west.said(o) == 2 && east.said(west.cfg.Self) == 1
		})
		east.mu.Lock()
		t.Logf("a statement of %d bytes", len(east.trust.Current().Bytes))
		east.mu.Unlock()
	}
}
