package daemon

import (
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

func TestLost(t *testing.T) {
	frontend := func(n byte, backends ...byte) datapath.Frontend {
		f := datapath.Frontend{Addr: l4.New(netip.AddrFrom4([4]byte{241, 0, 0, n}), 53, l4.UDP)}
		for _, b := range backends {
			f.Backends = append(f.Backends, datapath.Backend{IP: netip.AddrFrom4([4]byte{10, 0, 0, b}), Port: 53, Weight: uint32(b)})
		}
		return f
	}
	reweighted := frontend(1, 1, 2)
	reweighted.Backends[0].Weight = 9
	for _, tc := range []struct {
		name    string
		was, is []datapath.Frontend
		want    bool
	}{
		{"nothing", nil, nil, false},
		{"a new frontend", nil, []datapath.Frontend{frontend(1, 1)}, false},
		{"a new backend", []datapath.Frontend{frontend(1, 1)}, []datapath.Frontend{frontend(1, 1, 2)}, false},
		{"another weight", []datapath.Frontend{frontend(1, 1, 2)}, []datapath.Frontend{reweighted}, false},
		{"a lost backend", []datapath.Frontend{frontend(1, 1, 2)}, []datapath.Frontend{frontend(1, 2, 3)}, true},
		{"a lost frontend", []datapath.Frontend{frontend(1, 1), frontend(2)}, []datapath.Frontend{frontend(1, 1)}, true},
	} {
		if got := lost(tc.was, tc.is); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// The first pass of a life waits for a settled plan, but not forever; later ones do not wait.
func TestEarly(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &stale{now: func() time.Time { return now }}
	step := func(after time.Duration, settled bool, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := s.early(settled); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	step(0, false, trust)
	step(trust/3, false, trust-trust/3)
	step(0, true, 0)
	step(trust, false, 0)
	s.passed = true
	step(-trust, false, 0)
}
