package authority

import (
	"slices"
	"testing"
)

// FuzzOpenStatement: whatever arrives, nothing but what the root signed is accepted. Half of the
// inputs are signed by the root, as a hostile cluster would.
func FuzzOpenStatement(f *testing.F) {
	b := must(encMode.Marshal(statement()))
	f.Add(b, true)
	f.Add(must(statement().Sign(east)), false)
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
