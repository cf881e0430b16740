package sim

import (
	"slices"
	"testing"
	"time"
)

// knows reports whether all machines but the dead ones call exactly these dead.
func (w *Network) knows(dead []*Machine) bool {
	for _, m := range w.Machines {
		if slices.Contains(dead, m) {
			continue
		}
		s := m.node.State()
		for _, p := range w.Machines {
			if s.Dead(p.Self) != slices.Contains(dead, p) {
				return false
			}
		}
	}
	return true
}

// claims is how many records name a silent node.
func (w *Network) claims(m *Machine) (n int) {
	for _, r := range m.node.State().Records.All() {
		if len(r.Content.Silent) > 0 {
			n++
		}
	}
	return n
}

// TestDeathOfMany: in a large cluster, a machine's death changes few records, and that of a rack is
// known soon after; those that come back are alive again.
func TestDeathOfMany(t *testing.T) {
	for _, c := range []struct{ dead, most int }{{1, 9}, {8, 22}} {
		w := New(Config{Seed: *seed, Clusters: 2, Nodes: 30, Endpoints: 1, Pinned: true})
		w.Resume(w.Machines)
		w.Run(3 * time.Second)
		dead := w.Machines[3 : 3+c.dead]
		for _, m := range dead {
			m.TurnOff()
		}
		began := w.now
		if !w.Until(func() bool { return w.knows(dead) }, 100*time.Millisecond, time.Minute) {
			s := w.Machines[0].node.State()
			t.Fatalf("not all know after a minute that %d are dead: of %v, %d records claim that, and dead are %v", c.dead, dead[0].Self, w.claims(w.Machines[0]), s.DeadOf(dead[0].Self.Cluster))
		}
		took := w.now - began
		w.Run(5 * time.Second)
		t.Logf("%d dead of 30: all know after %s, %d records claim it", c.dead, took, w.claims(w.Machines[40]))
		if n := w.claims(w.Machines[40]); n > c.most || took > 6*time.Second {
			t.Errorf("%d dead: all know after %s, %d records claim it", c.dead, took, n)
		}
		w.Recover()
		if !w.Until(func() bool { return w.knows(nil) }, 100*time.Millisecond, time.Minute) {
			t.Error("those that came back are not alive for all after a minute")
		}
	}
}

// TestSplitCluster: of a large cluster that falls into two parts, the smaller part withdraws
// nothing, and nobody withdraws a machine that it reaches. Afterwards, nothing is left of it.
func TestSplitCluster(t *testing.T) {
	for i, c := range []struct {
		smaller int
		oneWay  bool
	}{{6, false}, {12, false}, {12, true}} {
		w := New(Config{Seed: *seed + uint64(i), Clusters: 2, Nodes: 24, Endpoints: 1, Pinned: true})
		w.Resume(w.Machines)
		w.Run(3 * time.Second)
		home := w.Machines[:24]
		small, rest := home[:c.smaller], home[c.smaller:]
		for _, a := range small {
			for _, b := range rest {
				w.Cut(a, b)
				if !c.oneWay {
					w.Cut(b, a)
				}
			}
		}
		for range 20 {
			w.Run(time.Second)
			for _, m := range w.Machines {
				s := m.node.State()
				for _, p := range w.Machines {
					if s.Dead(p.Self) && (m == p || w.talk(m, p) || slices.Contains(small, m)) {
						t.Fatalf("%d of 24 are apart: %s takes %s for dead", c.smaller, m.Self, p.Self)
					}
				}
			}
		}
		w.Heal()
		if !w.Until(func() bool { return w.knows(nil) && w.claims(w.Machines[0]) == 0 }, 100*time.Millisecond, time.Minute) {
			t.Errorf("%d of 24 were apart: after a minute, not all are alive for all", c.smaller)
		}
	}
}
