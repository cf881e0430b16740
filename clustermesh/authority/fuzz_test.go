package authority

import (
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
)

// FuzzOpenStatement: whatever arrives, nothing but what the root signed is accepted. Half of the
// inputs are signed by the root, as a hostile cluster would.
func FuzzOpenStatement(f *testing.F) {
	b := must(encMode.Marshal(statement()))
	f.Add(b, true)
	f.Add(must(statement().Sign(east)), false)
	proven := proving(statement(), tunnels)
	f.Add(must(encMode.Marshal(proven)), true)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, b []byte, sign bool) {
		wire := b
		if sign {
			wire = must(encMode.Marshal(signed{Bytes: b, Signature: east.sign(aboutNode, b)}))
		}
		s, err := OpenStatement(wire, pins())
		if err != nil {
			return
		}
		if err := s.check(); err != nil {
			t.Fatalf("accepted %+v: %v", s, err)
		}
		if s.KeyProven && (s.Proof != proven.Proof || s.WireGuard != proven.WireGuard || s.Key != proven.Key || s.Origin() != proven.Origin()) {
			t.Fatalf("proven: %+v", s)
		}
		Admit(self, pins()[s.Cluster], s, honest())
	})
}

// FuzzOpenRequest: whatever arrives, a signer reads only what the owner of the key signed. Half of the
// inputs are signed, as a hostile node would.
func FuzzOpenRequest(f *testing.F) {
	b := must(encMode.Marshal(Request{Want: wanted(), Token: "token"}))
	f.Add(b, true)
	f.Add(must(Request{Want: wanted()}.Sign(node, channel)), false)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, b []byte, sign bool) {
		wire := b
		if sign {
			wire = must(encMode.Marshal(signed{Bytes: b, Signature: node.sign(aboutRequest, slices.Concat(channel, b))}))
		}
		r, err := OpenRequest(wire, channel)
		if err != nil {
			return
		}
		s, _ := Certify(r.Want, Known{}, began)
		if len(s.Addresses) > 0 || len(s.Prefixes) > 0 {
			t.Fatalf("certified what is not known: %+v", s)
		}
		if _, err := s.Sign(east); err != nil {
			t.Fatalf("accepted %+v: %v", r, err)
		}
	})
}

// FuzzOpenAnswer: whatever a signer answers, a node takes only what the root signed about it.
func FuzzOpenAnswer(f *testing.F) {
	f.Add(Answer{Statement: must(statement().Sign(east))}.Encode())
	f.Add(Answer{Refused: "no"}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, _, err := OpenAnswer(b, wanted(), pins()); err == nil && (s.Key != wanted().Key || s.Origin() != wanted().Origin()) {
			t.Fatalf("took %+v", s)
		}
	})
}

// FuzzSeal: no bytes are the proof of a record but the signature of its origin. With sign, they are a
// statement that the node's key sealed the record with.
func FuzzSeal(f *testing.F) {
	text, stated := []byte("a record"), must(statement().Sign(east))
	f.Add(Seal(node, text, stated), "n1", false)
	f.Add(Seal(east, text, nil), "", false)
	f.Add(stated, "n1", true)
	f.Add(Seal(west, text, stated), "n1", false) // another key
	f.Add(stated, "n2", true)                    // the statement about another node
	f.Add([]byte{}, "n2", false)
	f.Fuzz(func(t *testing.T, b []byte, name string, sign bool) {
		proof := b
		if sign {
			proof = Seal(node, text, b)
		}
		o := clustermesh.Origin{Cluster: "east", Node: clustermesh.NodeName(name)}
		s, err := Verify(pins(), o, text, proof, func(b []byte) (Statement, error) { return OpenStatement(b, pins()) })
		if err != nil {
			return
		}
		var w seal
		if err := decMode.Unmarshal(proof, &w); err != nil {
			t.Fatalf("accepted %x: %v", proof, err)
		}
		by := node
		if name == "" {
			by = east
		} else if name != "n1" || !s.Matches(statement()) {
			t.Fatalf("node %q is stated: %+v", name, s)
		}
		if !by.Public().verify(aboutRecord, text, w.Signature) {
			t.Fatalf("accepted %x", proof)
		}
	})
}

// FuzzPinsAdmit: with whatever pins an operator writes, what is admitted of an honest record is inside them.
func FuzzPinsAdmit(f *testing.F) {
	f.Add(pins().Encode())
	f.Add([]byte("clusters: [{cluster: east, roots: [" + east.Public().String() + "], pods: [10.1.0.0/16], nodes: [192.0.2.1/32], namespaces: ['[']}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ps, err := ParsePins(text)
		if err != nil {
			return
		}
		for _, pin := range ps {
			r := honest()
			r.Origin.Cluster = pin.Cluster
			got := Admit(Self{Cluster: pin.Cluster + "2"}, pin, statement(), r).Content
			for _, e := range got.Endpoints {
				if !contains(pin.Pods, e.Addr) && !contains(pin.Nodes, e.Addr) {
					t.Errorf("endpoint %s is outside %v and %v", e.Addr, pin.Pods, pin.Nodes)
				}
			}
			for _, p := range got.Node.Prefixes {
				if _, tunnel := clustermesh.TunnelRange(p); !tunnel && !covers(pin.Pods, p) {
					t.Errorf("prefix %s is outside %v", p, pin.Pods)
				}
			}
			for _, a := range got.Node.Addresses {
				if !contains(pin.Nodes, a) {
					t.Errorf("address %s is outside %v", a, pin.Nodes)
				}
			}
		}
		_ = ps.Overlap()
	})
}
