package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// tiny is a clusterset of two to six nodes, drawn with a seed.
func tiny(seed uint64) *Network {
	rng := rand.New(rand.NewPCG(seed, 4))
	sizes := [][2]int{{1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 1}, {2, 2}, {3, 1}, {3, 2}}
	size := sizes[rng.IntN(len(sizes))]
	return New(Config{
		Seed: seed, Clusters: size[0], Nodes: size[1], Endpoints: 1, Pinned: rng.IntN(6) == 0, Skew: []time.Duration{0, time.Second}[rng.IntN(2)],
		Loss: []float64{0, 0, 0.01}[rng.IntN(3)],
	})
}

// runStarts starts a clusterset at random moments, splits it, has nodes publish on both sides, and returns what is
// wrong after the split has ended.
func runStarts(w *Network) error {
	for _, m := range w.Machines {
		w.Later(w.Draw(time.Second), func() { w.start(m) })
	}
	w.Run(w.Draw(1500 * time.Millisecond))
	w.split()
	for range 2 {
		w.Run(w.Draw(time.Second))
		if m := w.any(); m.Runs() {
			m.Publish()
		}
	}
	w.Run(w.Draw(2 * time.Second))
	w.Recover()
	return w.settles(500 * time.Millisecond)
}

// TestStarts: ten thousand clustersets of a few nodes that start at random moments, and are split at one: before the
// nodes have found each other, while they do, or afterwards. After that, all nodes have the same records.
func TestStarts(t *testing.T) {
	t.Parallel()
	each(t, map[string]int{"short": 10_000, "long": 100_000}[*preset], tiny, runStarts)
}
