package authority

import "testing"

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
