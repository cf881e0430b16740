package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// splittable is a clusterset with a large cluster, drawn with a seed.
func splittable(seed uint64) *Network {
	rng := rand.New(rand.NewPCG(seed, 8))
	return New(Config{
		Seed: seed, Clusters: 1 + rng.IntN(3), Nodes: 8 + rng.IntN(16), Endpoints: 1, Pinned: rng.IntN(4) > 0, Diskless: true,
		Loss: []float64{0, 0, 0.01}[rng.IntN(3)],
	})
}

// runSplit splits the first cluster at random, mostly so that neither part hears the other, and returns whether a
// machine is taken for dead that must not be: by itself, by one that hears it, or by a part that has
// too few machines to decide.
func runSplit(w *Network) error {
	w.Resume(w.Machines)
	w.Run(3 * time.Second)
	home := w.of(0)
	n := len(home)
	apart, oneWay := map[*Machine]bool{}, w.rng.IntN(3) == 0
	size := 1 + w.rng.IntN(n-1)
	// few reports whether so many machines must not decide: half of a small cluster can, because half of it may be dead.
	few := func(machines int) bool { return 2*machines < n || 2*machines == n && n > 10 }
	for _, i := range w.rng.Perm(n)[:size] {
		apart[home[i]] = true
	}
	for _, a := range home {
		for _, b := range home {
			if apart[a] && !apart[b] {
				w.Cut(a, b)
				if !oneWay {
					w.Cut(b, a)
				}
			}
		}
	}
	for range 12 {
		w.Run(time.Second)
		for _, m := range w.Machines {
			s := m.node.State()
			fewer := m.cluster == 0 && (apart[m] && few(size) || !apart[m] && few(n-size))
			for _, p := range home {
				if s.Dead(p.Self) && (m == p || w.talk(m, p) || fewer) {
					return fmt.Errorf("%d of %d were apart, one way %v: %s took %s for dead", size, n, oneWay, m.Self, p.Self)
				}
			}
		}
	}
	w.Heal()
	return w.settles(time.Second)
}

// TestSplits: a cluster that falls into two parts withdraws nothing that it should not, and neither do the
// others.
func TestSplits(t *testing.T) {
	t.Parallel()
	each(t, map[string]int{"short": 24, "long": 1_000}[*preset], splittable, runSplit)
}
