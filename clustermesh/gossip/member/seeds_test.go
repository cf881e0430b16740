package member

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

func addr(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 7946)
}

func addrs(ns ...int) (out []netip.AddrPort) {
	for _, n := range ns {
		out = append(out, addr(n))
	}
	return out
}

// TestWaiting: a daemon waits for others until it knows that there are none.
func TestWaiting(t *testing.T) {
	const any, node = "any other daemon (seeds one:7946, two:7946)", "another node of the cluster"
	self := addr(1)
	seeds := []string{"one:7946", "two:7946"}
	for _, tc := range []struct {
		name  string
		seeds []string
		do    func(*Seeds)
		want  string
	}{
		{"no seeds", nil, func(*Seeds) {}, ""},
		{"seeds", seeds, func(*Seeds) {}, any},
		{"all are ourselves", seeds, func(s *Seeds) { s.Resolved([]Target{{self, "one:7946"}, {self, "two:7946"}}) }, ""},
		{"one is ourselves", seeds, func(s *Seeds) { s.Resolved([]Target{{self, "one:7946"}, {addr(2), "two:7946"}}) }, any},
		{"one is ourselves and another", seeds, func(s *Seeds) {
			s.Resolved([]Target{{self, "one:7946"}, {addr(2), "one:7946"}, {self, "two:7946"}})
		}, any},
		{"one cannot be resolved", seeds, func(s *Seeds) { s.Resolved([]Target{{self, "one:7946"}}) }, any},
		{"one turns out to be ourselves", seeds, func(s *Seeds) {
			s.IsSelf(addr(2))
			s.Resolved([]Target{{self, "one:7946"}, {addr(2), "two:7946"}})
		}, ""},
		{"seeds come later", nil, func(s *Seeds) { s.Set(seeds, nil) }, any},
		{"seeds go", seeds, func(s *Seeds) { s.Set(nil, nil); s.Resolved(nil) }, ""},
		{"a hint", nil, func(s *Seeds) { s.Set(nil, addrs(1, 2)) }, node},
		{"a hint that is ourselves", nil, func(s *Seeds) { s.Set(nil, addrs(1)) }, ""},
		{"hints are waited for only so long", nil, func(s *Seeds) { s.Set(nil, addrs(2)); s.Late() }, ""},
		{"and not again", nil, func(s *Seeds) { s.Set(nil, addrs(2)); s.Late(); s.Set(nil, addrs(3)) }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewSeeds(tc.seeds, self)
			tc.do(s)
			want := tc.want
			if want != "" {
				want = "a first exchange with " + want
			}
			if got := s.Waiting(); got != want {
				t.Errorf("waits for %q, want %q", got, want)
			}
		})
	}
}

// TestTargets: neither ourselves nor live members are tried, nothing twice, and not much at a time.
func TestTargets(t *testing.T) {
	var many []int
	for n := range 40 {
		many = append(many, 100+n)
	}
	for _, tc := range []struct {
		name        string
		seeds       []Target
		known, live []netip.AddrPort
		want        []int // nil: any maxTargets
		reached     []string
	}{
		{"nothing", nil, nil, nil, []int{}, nil},
		{"a seed and a lost node", []Target{{addr(2), "two"}}, addrs(3), nil, []int{2, 3}, nil},
		{"the same twice", []Target{{addr(2), "two"}, {addr(2), "deux"}}, addrs(2, 2), nil, []int{2}, nil},
		{"ourselves", []Target{{addr(1), "one"}}, addrs(1), nil, []int{}, []string{"one"}},
		{"a live member", []Target{{addr(2), "two"}, {addr(3), "three"}}, nil, addrs(2), []int{3}, []string{"two"}},
		{"too many", nil, addrs(many...), nil, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, reached := NewSeeds(nil, addr(1)).Targets(tc.seeds, [][]netip.AddrPort{tc.known}, tc.live, rand.New(rand.NewPCG(1, 1)))
			got := []int{}
			for _, o := range out {
				got = append(got, int(o.Addr.Addr().As4()[3]))
			}
			slices.Sort(got)
			if tc.want == nil && len(slices.Compact(got)) != maxTargets || tc.want != nil && !slices.Equal(got, tc.want) {
				t.Errorf("tries %v, want %v", got, tc.want)
			}
			for _, seed := range tc.reached {
				if !reached[seed] {
					t.Errorf("%s counts as not reached: %v", seed, reached)
				}
			}
		})
	}
}

// TestSeedsAmongMany: a seed has its turn in each round, however many nodes are lost; and they have theirs,
// however many seeds there are.
func TestSeedsAmongMany(t *testing.T) {
	var lost []netip.AddrPort
	var seeds []Target
	for n := range 100 {
		lost = append(lost, addr(100+n))
		seeds = append(seeds, Target{addr(n), fmt.Sprint("seed-", n)})
	}
	s, rng := NewSeeds(nil), rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 3, 100} {
		for range 20 {
			out, _ := s.Targets(seeds[:n], [][]netip.AddrPort{lost}, nil, rng)
			of := 0
			for _, o := range out {
				if o.Seed != "" {
					of++
				}
			}
			if len(out) != maxTargets || of != min(n, maxTargets/2) {
				t.Fatalf("of %d seeds and 100 lost nodes it tries %d seeds of %d targets", n, of, len(out))
			}
		}
	}
	if out, _ := s.Targets(seeds, [][]netip.AddrPort{lost[:1]}, nil, rng); len(out) != maxTargets || out[maxTargets-1].Seed != "" {
		t.Errorf("of 100 seeds and one lost node it tries %v", out)
	}
}

// TestSeedsAmongHints: hints take no turn from the seeds.
func TestSeedsAmongHints(t *testing.T) {
	var lost []netip.AddrPort
	for n := range 100 {
		lost = append(lost, addr(100+n))
	}
	seeds := []Target{{addr(1), "one"}, {addr(2), "two"}, {Addr: addr(3)}, {Addr: addr(4)}, {Addr: addr(5)}, {Addr: addr(6)}}
	s, rng := NewSeeds(nil), rand.New(rand.NewPCG(1, 1))
	for range 50 {
		out, _ := s.Targets(seeds, [][]netip.AddrPort{lost}, nil, rng)
		if !slices.Contains(out, seeds[0]) || !slices.Contains(out, seeds[1]) || len(out) != maxTargets {
			t.Fatalf("of two seeds, four hints and 100 lost nodes it tries %v", out)
		}
	}
}

// TestClustersTakeTurns: a cluster with thousands of addresses leaves room for one with few.
func TestClustersTakeTurns(t *testing.T) {
	var many []netip.AddrPort
	for n := range 5000 {
		many = append(many, netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(n >> 8), byte(n)}), 7946))
	}
	s, rng := NewSeeds(nil), rand.New(rand.NewPCG(1, 1))
	for range 20 {
		out, _ := s.Targets(nil, [][]netip.AddrPort{many, addrs(1, 2)}, nil, rng)
		if len(out) != maxTargets || !slices.Contains(out, Target{Addr: addr(1)}) || !slices.Contains(out, Target{Addr: addr(2)}) {
			t.Fatalf("beside 5000 addresses of another cluster, 2 have no turn in %v", out)
		}
	}
}

// TestNextHints: of many hints a few are tried, and in time all.
func TestNextHints(t *testing.T) {
	s := NewSeeds([]string{"one:7946"})
	var hints []netip.AddrPort
	for n := range 30 {
		hints = append(hints, addr(n))
	}
	s.Set([]string{"one:7946"}, hints)
	rng, seen := rand.New(rand.NewPCG(1, 1)), map[string]bool{}
	for range 100 {
		seeds, few := s.Next(rng)
		if fmt.Sprint(seeds) != "[one:7946]" || len(few) != maxHints {
			t.Fatalf("seeds %v, %d hints", seeds, len(few))
		}
		for _, h := range few {
			seen[h.Addr.String()] = true
		}
	}
	if len(seen) != len(hints) {
		t.Errorf("%d of %d hints are ever tried", len(seen), len(hints))
	}
}
