package authority

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

var tunnels, otherTunnels = key.Private{31: 1}, key.Private{31: 2}

// proving returns a statement with the proof that its node has a key.
func proving(s Statement, k key.Private) Statement {
	s.WireGuard = k.Public()
	return s.WithProof(must(ProveKey(bytes.NewReader(make([]byte, 64)), s.Origin(), s.Key, k)))
}

// TestProof: the proof of a key counts for one node, one node key and one WireGuard key, and arrives with the
// statement.
func TestProof(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Statement)
		want   bool
	}{
		"its own":                   {func(*Statement) {}, true},
		"with other addresses":      {func(s *Statement) { s.Addresses = nil }, true},
		"copied by another node":    {func(s *Statement) { s.Node = "n2" }, false},
		"copied by another cluster": {func(s *Statement) { s.Cluster = "north" }, false},
		"of another node key":       {func(s *Statement) { s.Key = west.Public() }, false},
		"of another WireGuard key":  {func(s *Statement) { s.WireGuard = otherTunnels.Public() }, false},
		"of no key":                 {func(s *Statement) { s.WireGuard = key.Public{} }, false},
		"of a key of low order":     {func(s *Statement) { s.WireGuard = key.Public{1} }, false},
		"none":                      {func(s *Statement) { s.Proof = key.Signature{} }, false},
		"with another bit":          {func(s *Statement) { s.Proof[3] ^= 8 }, false},
	} {
		s := proving(statement(), tunnels)
		if !s.KeyProven {
			t.Fatal("it proves nothing")
		}
		c.change(&s)
		trusted := pins()
		trusted["north"] = trusted["east"]
		got, err := OpenStatement(must(s.Sign(east)), trusted)
		if err != nil || got.KeyProven != c.want {
			t.Errorf("%s: proven %t, %v", name, got.KeyProven, err)
		}
		r := honest()
		r.Content.Node.PublicKey = otherTunnels.Public() // the statement decides which key is in force
		if r = Admit(self, pins()["east"], got, r); r.KeyProven != c.want || r.Content.Node.PublicKey != got.WireGuard {
			t.Errorf("%s: the record is proven %t", name, r.KeyProven)
		}
	}
	if r := AdmitUnpinned(self, honest()); r.KeyProven {
		t.Error("without pins, nothing is proven")
	}
	if _, err := ProveKey(strings.NewReader(""), clustermesh.Origin{}, PublicKey{}, tunnels); err == nil {
		t.Error("proven without randomness")
	}
}

// unproven is a statement as the version before reads and writes it.
type unproven struct {
	Cluster   clustermesh.ClusterName `cbor:"1,keyasint"`
	Node      clustermesh.NodeName    `cbor:"2,keyasint"`
	Key       PublicKey               `cbor:"3,keyasint"`
	WireGuard key.Public              `cbor:"4,keyasint"`
	Addresses []netip.Addr            `cbor:"5,keyasint,omitempty"`
	Prefixes  []netip.Prefix          `cbor:"6,keyasint,omitempty"`
	Locality  clustermesh.Locality    `cbor:"7,keyasint"`
	Serial    uint64                  `cbor:"8,keyasint"`
	NotBefore int64                   `cbor:"9,keyasint"`
	NotAfter  int64                   `cbor:"10,keyasint"`
}

// TestProofAndOlderVersion: the version before reads a statement with a proof, and writes those without.
func TestProofAndOlderVersion(t *testing.T) {
	s := proving(statement(), tunnels)
	var w signed
	if err := decMode.Unmarshal(must(s.Sign(east)), &w); err != nil {
		t.Fatal(err)
	}
	var old unproven
	if err := decMode.Unmarshal(w.Bytes, &old); err != nil || old.Node != s.Node || old.WireGuard != s.WireGuard || old.NotAfter != s.NotAfter {
		t.Errorf("the version before reads %+v, %v", old, err)
	}
	request := must(Request{Want: s}.Sign(node, channel))
	if err := decMode.Unmarshal(request, &w); err != nil {
		t.Fatal(err)
	}
	var r struct {
		Want unproven `cbor:"1,keyasint"`
	}
	if err := decMode.Unmarshal(w.Bytes, &r); err != nil || r.Want.WireGuard != s.WireGuard {
		t.Errorf("the version before reads the request %+v, %v", r, err)
	}

	b := must(encMode.Marshal(old))
	got, err := OpenStatement(must(encMode.Marshal(signed{Bytes: b, Signature: east.sign(aboutNode, b)})), pins())
	if err != nil || got.KeyProven || !got.Matches(s) || got.Satisfies(s) || !s.Satisfies(got) {
		t.Errorf("of the version before: %+v, %v", got, err)
	}
	if s.Proof, s.KeyProven = (key.Signature{}), false; !bytes.Equal(must(encMode.Marshal(s)), b) {
		t.Error("without a proof, the bytes are others than those of the version before")
	}
}

// TestCertifyKey: a node that proves its key has it. One that proves none has its key if no other node does,
// or if it was the first to have it.
func TestCertifyKey(t *testing.T) {
	k := tunnels.Public()
	plain := func(s Statement) Statement { s.WireGuard = k; return s }
	proven := func(s Statement) Statement { return proving(s, tunnels) }
	copied := func(s Statement) Statement {
		s.WireGuard, s.Proof = k, proven(Statement{Cluster: "west", Node: "n7", Key: west.Public()}).Proof
		return s
	}
	foreign := Statement{Cluster: "west", Node: "n7", Key: west.Public()}
	for _, c := range []struct {
		what    string
		asks    func(Statement) Statement
		had     bool
		other   func(Statement) Statement // what is stated of node n2, and of one of another cluster
		want    bool
		proven  bool
		problem string
	}{
		{what: "its own, without proof", asks: plain, want: true},
		{what: "its own, with proof", asks: proven, want: true, proven: true},
		{what: "no key", asks: func(s Statement) Statement { s.WireGuard = key.Public{}; return s }},
		{what: "another's, who did not prove it", asks: plain, other: plain, problem: "which keeps it"},
		{what: "another's, who proved it", asks: plain, other: proven, problem: "which keeps it"},
		{what: "another's, with its proof", asks: copied, other: proven, problem: "its proof that it has the private key is wrong"},
		{what: "a key of its own, with a wrong proof", asks: copied, problem: "its proof that it has the private key is wrong"},
		{what: "its own, and another did not prove it", asks: proven, other: plain, want: true, proven: true},
		{what: "of two that have the private key", asks: proven, other: proven, want: true, proven: true},
		{what: "without proof, and had it", asks: plain, had: true, other: plain, want: true},
		{what: "without proof, and had it before another proved it", asks: plain, had: true, other: proven, problem: "which keeps it"},
	} {
		for _, far := range []bool{false, true} {
			known := Known{Node: Holder{Name: "n1"}, Others: []Holder{{Name: "n3"}}, Pins: ownPins()}
			if c.had {
				known.Node.Stated = plain(statement())
			}
			by := "node east/n2"
			if c.other != nil && far {
				by = "node west/n7"
				known.Foreign = []Statement{c.other(foreign)}
			} else if c.other != nil {
				known.Others = append(known.Others, Holder{Name: "n2", Stated: c.other(Statement{Cluster: "east", Node: "n2", Key: east.Public()})})
			}
			w := wanted()
			w.Addresses, w.Prefixes = nil, nil
			got, left := Certify(c.asks(w), known, began)
			if (got.WireGuard == k) != c.want || got.KeyProven != c.proven || (got.Proof != key.Signature{}) != c.proven {
				t.Errorf("%s (%s): it states %s, proven %t, with proof %x", c.what, by, got.WireGuard, got.KeyProven, got.Proof)
			}
			if text := fmt.Sprint(left); c.problem == "" && len(left) > 0 || !strings.Contains(text, c.problem) || c.problem == "which keeps it" && !strings.Contains(text, by) {
				t.Errorf("%s (%s): problems: %s", c.what, by, text)
			}
		}
	}
}

func BenchmarkWithProof(b *testing.B) {
	s := statement()
	s.WireGuard = tunnels.Public()
	p := must(ProveKey(rand.Reader, s.Origin(), s.Key, tunnels))
	for b.Loop() {
		if s.WithProof(p).KeyProven != true {
			b.Fatal("it is not proven")
		}
	}
}

func BenchmarkOpenStatement(b *testing.B) {
	for name, s := range map[string]Statement{"proven": proving(statement(), tunnels), "unproven": statement()} {
		wire := must(s.Sign(east))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := OpenStatement(wire, pins()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
