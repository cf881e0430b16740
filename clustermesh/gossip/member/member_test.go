package member

import "testing"

func FuzzParseMember(f *testing.F) {
	f.Add("us-east/n1/kf12oi")
	f.Add("//")
	f.Fuzz(func(t *testing.T, name string) {
		m, err := Parse(name)
		if err != nil {
			return
		}
		if back, err := Parse(m.String()); err != nil || back != m {
			t.Fatalf("%q: %v became %v: %v", name, m, back, err)
		}
	})
}
