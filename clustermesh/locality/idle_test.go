package locality_test

import (
	"testing"

	"strait.io/strait/clustermesh/locality"
)

func TestIdle(t *testing.T) {
	near, far := cand("a", "n1", "r1", "z1"), func(change ...func(*locality.Candidate)) locality.Candidate {
		return cand("b", "n9", "r9", "z9", change...)
	}
	for _, tc := range []struct {
		name   string
		in     locality.Candidate
		prefer locality.Preference
		idle   bool
	}{
		{"ready, but another is nearer", far(), locality.Preference{}, true},
		{"not ready", far(notReady), locality.Preference{}, true},
		{"in use", cand("a", "n1", "r1", "z1"), locality.Preference{}, false},
		{"terminating", far(terminating), locality.Preference{}, false},
		{"on a dead machine", far(dead), locality.Preference{}, false},
		{"ready, on a machine that does not answer", far(silent), locality.Preference{}, false},
		{"not ready, on a machine that does not answer", far(silent, notReady), locality.Preference{}, false},
		{"barred", far(func(c *locality.Candidate) { c.Barred = "no" }), locality.Preference{}, false},
		{"barred by its Service", far(), locality.Preference{LocalOnly: true}, false},
	} {
		got := locality.Select(self, []locality.Candidate{near, tc.in}, tc.prefer, locality.Ramp{})
		if v := got.Verdicts[1]; v.Idle() != tc.idle {
			t.Errorf("%s: idle %v, want %v (%s)", tc.name, v.Idle(), tc.idle, v.Reason)
		}
	}
}
