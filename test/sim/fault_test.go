package sim

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	preset = flag.String("preset", "short", "how much to run: short (half a minute), or long (ten minutes)")
	seed   = flag.Uint64("seed", 1, "the first seed")
	cases  = flag.Int("cases", 0, "how many random clustersets TestFaults runs; 0: as the preset has it")
)

// slow is how many times as long everything takes.
var slow = 1

// settled is how long a clusterset may take, after the last fault, until all is well.
const settled = 2 * time.Minute

// random is a small clusterset, drawn with a seed.
func random(seed uint64) *Network {
	rng := rand.New(rand.NewPCG(seed, 2))
	cfg := Config{
		Seed: seed, Clusters: 1 + rng.IntN(3), Nodes: 1 + rng.IntN(4), Endpoints: 1,
		Pinned: rng.IntN(3) == 0, Skew: []time.Duration{0, time.Second, 4 * time.Minute}[rng.IntN(3)],
		Loss: []float64{0, 0.001, 0.05}[rng.IntN(3)],
	}
	return New(cfg)
}

// runFaults starts a clusterset, has things go wrong, and returns what is wrong after all have ended.
func runFaults(w *Network) error {
	for _, m := range w.Machines {
		w.Later(w.Draw(5*time.Second), func() { w.start(m) })
	}
	for range 8 + w.rng.IntN(12) {
		w.Run(w.Draw(5 * time.Second))
		w.Misfortune()
	}
	w.Recover()
	var err error
	w.Until(func() bool {
		err = w.Agrees()
		return err == nil
	}, 5*time.Second, settled)
	return err
}

// TestFaults: small clustersets that start at random moments and lose daemons, machines, disks, links and
// messages. After that, all nodes have the same records, nothing is lost, each cluster has one leader, and
// each node hears all others.
func TestFaults(t *testing.T) {
	t.Parallel()
	n := *cases
	if n == 0 {
		n = map[string]int{"short": 400, "long": 10_000}[*preset] / slow
	}
	var next atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= uint64(n) || t.Failed() {
					return
				}
				w := random(*seed + i)
				if err := runFaults(w); err != nil {
					t.Errorf("%d clusters of %d nodes, pinned %v, clocks wrong by up to %s: %s after the last fault: %v\n"+
						"to repeat it: go test ./test/sim -run TestFaults -cases 1 -seed %d",
						w.cfg.Clusters, w.cfg.Nodes, w.cfg.Pinned, w.cfg.Skew, settled, err, *seed+i)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d clustersets", n)
}
