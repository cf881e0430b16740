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

// TestDeadIsBack: a machine that was cut off, and taken for dead, is alive again for all soon after it
// can be reached.
func TestDeadIsBack(t *testing.T) {
	w := New(Config{Seed: *seed, Clusters: 3, Nodes: 30, Endpoints: 1, Pinned: true})
	w.Resume(w.Machines)
	w.Run(3 * time.Second)
	m := w.Machines[7]
	for _, p := range w.Machines {
		if p != m {
			w.Cut(m, p)
			w.Cut(p, m)
		}
	}
	others := slices.DeleteFunc(slices.Clone(w.Machines), func(p *Machine) bool { return p == m })
	takenForDead := func() (n int) {
		for _, p := range others {
			if p.node.State().Dead(m.Self) {
				n++
			}
		}
		return n
	}
	if !w.Until(func() bool { return takenForDead() == len(others) }, 100*time.Millisecond, 20*time.Second) {
		t.Fatalf("only %d of %d take it for dead", takenForDead(), len(others))
	}
	w.Run(5 * time.Second)
	w.Heal()
	began := w.now
	if !w.Until(func() bool { return takenForDead() == 0 }, 10*time.Millisecond, time.Minute) {
		t.Fatalf("after a minute, %d still take it for dead", takenForDead())
	}
	t.Logf("alive for all after %s", w.now-began)
	if took := w.now - began; took > 2*time.Second {
		t.Errorf("it is alive for all after %s", took)
	}
}
