package trust

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
)

// changed returns pins of which one was edited.
func changed(pins authority.Pins, c clustermesh.ClusterName, edit func(*authority.Pin)) authority.Pins {
	pins = maps.Clone(pins)
	pin := pins[c]
	edit(&pin)
	pins[c] = pin
	return pins
}

// TestRepinFells: what cannot be proven with the new pins is not admitted any more, though it was verified
// with the former ones; and what was verified with them counts for nothing else.
func TestRepinFells(t *testing.T) {
	first, second := root("east").Public(), root("east again").Public()
	both := changed(pinned("west", "east"), "east", func(p *authority.Pin) { p.Roots = append(p.Roots, second) })
	for name, after := range map[string]authority.Pins{
		"the cluster is not pinned": {"west": both["west"]},
		"another root is pinned":    changed(both, "east", func(p *authority.Pin) { p.Roots = []authority.PublicKey{second} }),
		"no root is pinned":         changed(both, "east", func(p *authority.Pin) { p.Roots = nil }),
		"the key of the node is revoked": changed(both, "east", func(p *authority.Pin) {
			p.Revoked = []string{authority.PrivateKey{2}.Public().Fingerprint()}
		}),
	} {
		s := newStating(t, both)
		e := s.says(s.signs(root("east"), 1, s.now))
		if _, p, ok := s.Admit(node("east", "n2"), e, s.now); !ok {
			t.Fatal(p)
		}
		if again := s.Repin(after); !again("east") {
			t.Errorf("%s: its records are not admitted again", name)
		}
		if _, _, ok := s.Admit(replica.Peer{}, e, s.now); ok {
			t.Errorf("%s: the record is admitted", name)
		}
		if s.Proves(Peer{Origin: s.o, Key: s.key.Public()}) {
			t.Errorf("%s: the key of the node still proves who it is", name)
		}
		if _, known := s.Summary().Statements[s.o]; known {
			t.Errorf("%s: the statement is still in force", name)
		}
		s.Repin(both)
		if _, p, ok := s.Admit(node("east", "n2"), e, s.now); !ok {
			t.Errorf("%s: with the former pins again, the record is refused: %v", name, p)
		}
	}
	if first == second {
		t.Fatal("the roots are the same")
	}
}

// TestRepinKeeps: what was proven with a root that stays pinned is not verified again.
func TestRepinKeeps(t *testing.T) {
	pins := pinned("west", "east")
	s := newStating(t, pins)
	e := s.says(s.signs(root("east"), 1, s.now))
	if _, p, ok := s.Admit(node("east", "n2"), e, s.now); !ok {
		t.Fatal(p)
	}
	known := s.verified.of[s.o].sum
	s.Repin(changed(pins, "east", func(p *authority.Pin) {
		p.Roots = append([]authority.PublicKey{root("east again").Public()}, p.Roots...)
	}))
	if s.verified.of[s.o].sum != known {
		t.Error("it must be verified again")
	}
	// A seal that is another is verified: it is no proof that the record was known.
	if _, _, ok := s.Admit(replica.Peer{}, e.Sealed(append([]byte{0}, e.Seal()...)), s.now); ok {
		t.Error("another seal is admitted")
	}
}

// TestRepinAgain: the records of a cluster are admitted again if its pin changed, or what counts for all.
func TestRepinAgain(t *testing.T) {
	pins := pinned("west", "east", "north")
	more := []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")}
	type set = map[clustermesh.ClusterName]bool
	for name, x := range map[string]struct {
		before, after authority.Pins
		want          set
	}{
		"nothing":          {pins, maps.Clone(pins), set{}},
		"namespaces":       {pins, changed(pins, "east", func(p *authority.Pin) { p.Namespaces = []string{"other"} }), set{"east": true}},
		"a cluster less":   {pins, authority.Pins{"west": pins["west"], "east": pins["east"]}, set{"north": true}},
		"a cluster more":   {authority.Pins{"west": pins["west"], "east": pins["east"]}, pins, set{"north": true}},
		"its own pods":     {pins, changed(pins, "west", func(p *authority.Pin) { p.Pods = more }), set{"west": true, "east": true, "north": true}},
		"pins at last":     {nil, pins, set{"west": true, "east": true, "north": true}},
		"no pins any more": {pins, nil, set{"west": true, "east": true, "north": true}},
	} {
		again := newStating(t, x.before).Repin(x.after)
		got := set{}
		for _, c := range []clustermesh.ClusterName{"west", "east", "north"} {
			if again(c) {
				got[c] = true
			}
		}
		if !maps.Equal(got, x.want) {
			t.Errorf("%s: %v are admitted again, want %v", name, got, x.want)
		}
	}
}

// TestRepinMachines: if other addresses are those of this cluster's machines, all records are admitted again.
func TestRepinMachines(t *testing.T) {
	pins := changed(pinned("west", "east"), "west", func(p *authority.Pin) { p.Nodes = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
	s := newStating(t, pins)
	s.current = Signed{Statement: authority.Statement{Cluster: "west", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, Bytes: []byte("signed")}
	s.UpdateMachines()
	if again := s.Repin(changed(pins, "west", func(p *authority.Pin) { p.Nodes = nil })); !again("east") {
		t.Error("the machine's address is free, and other clusters' records are not admitted again")
	}
	if len(s.receiver.Machines) != 0 {
		t.Errorf("machines %v", s.receiver.Machines)
	}
}

// BenchmarkRepin repins with 10,000 verified nodes of 100 clusters.
func BenchmarkRepin(b *testing.B) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	pins := pinned(names...)
	s := New(&Config{Node: authority.PrivateKey{1}, Pins: pins}, node("c0", "n1"))
	for i := range 10_000 {
		c := clustermesh.ClusterName(names[i%100])
		s.verified.set(clustermesh.Origin{Cluster: c, Node: clustermesh.NodeName(fmt.Sprint("n", i))}, verification{Signed: Signed{Statement: authority.Statement{Root: pins[c].Roots[0]}}})
	}
	other := changed(pins, "c7", func(p *authority.Pin) { p.Namespaces = []string{"other"} })
	for i := 0; b.Loop(); i++ {
		if i%2 == 0 {
			s.Repin(other)
		} else {
			s.Repin(pins)
		}
	}
}
