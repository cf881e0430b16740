package sim

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/clustermesh/topology"
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
	return w.settles(5 * time.Second)
}

// settles lets time pass until all is well, and returns what is wrong after a time that is enough.
func (w *Network) settles(step time.Duration) (err error) {
	w.Until(func() bool {
		err = w.Agrees()
		return err == nil || w.wrong != nil
	}, step, settled)
	return err
}

// TestFaults: small clustersets that start at random moments and lose daemons, machines, disks, links and
// messages. After that, all nodes have the same records, nothing is lost, each cluster has one leader, and
// each node hears all others.
func TestFaults(t *testing.T) {
	t.Parallel()
	each(t, map[string]int{"short": 300, "long": 10_000}[*preset], random, runFaults)
}

// relayed is a clusterset with relays, drawn with a seed: of a few nodes that all use them, or of about as many nodes
// as it takes for that.
func relayed(seed uint64) *Network {
	rng := rand.New(rand.NewPCG(seed, 6))
	cfg := Config{
		Seed: seed, Clusters: 1 + rng.IntN(3), Nodes: 4 + rng.IntN(5), Endpoints: 1, Topology: topology.Relays{},
		Pinned: rng.IntN(3) == 0, Skew: []time.Duration{0, time.Second}[rng.IntN(2)], Loss: []float64{0, 0.001, 0.05}[rng.IntN(3)],
	}
	if rng.IntN(4) == 0 {
		cfg.Clusters, cfg.Nodes, cfg.Topology = 3, 7, nil
	}
	return New(cfg)
}

// TestRelayFaults is TestFaults with relays.
func TestRelayFaults(t *testing.T) {
	t.Parallel()
	each(t, map[string]int{"short": 100, "long": 3_000}[*preset], relayed, runFaults)
}

// each draws n clustersets, or as many as the flag has it, and reports of each what is wrong after a run.
func each(t *testing.T, n int, draw func(seed uint64) *Network, run func(*Network) error) {
	if n /= slow; *cases > 0 {
		n = *cases
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
				w := draw(*seed + i)
				if err := run(w); err != nil {
					t.Errorf("%d clusters of %d nodes, pinned %v, clocks wrong by up to %s: %s after the last fault: %v\n"+
						"to repeat it: go test ./test/sim -run %s -cases 1 -seed %d",
						w.cfg.Clusters, w.cfg.Nodes, w.cfg.Pinned, w.cfg.Skew, settled, err, t.Name(), *seed+i)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d clustersets", n)
}
