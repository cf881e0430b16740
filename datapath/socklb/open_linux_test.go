package socklb

import (
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath/socklb/layout"
)

// BenchmarkOpen opens a balancer whose pins exist, as a restarted daemon does. It also reports how
// long the probes take, and how long the kernel takes to verify the programs, by its own count.
func BenchmarkOpen(b *testing.B) {
	if !inside(b) {
		return
	}
	cfg := config(b)
	cfg.MaxFrontends, cfg.MaxBackends, cfg.MaxSockets = 0, 0, 0
	if err := opened(b, cfg).Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		l, err := Open(cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(ms(timeProbe(b)), "probe-ms")
	b.ReportMetric(ms(timeVerifier(b)), "verifier-ms")
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

func timeProbe(b *testing.B) time.Duration {
	start := time.Now()
	if _, err := probe(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// timeVerifier loads the programs once, with small maps of their own, and adds up how long the
// verifier took for each.
func timeVerifier(b *testing.B) (sum time.Duration) {
	spec, err := layout.Spec()
	if err != nil {
		b.Fatal(err)
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for name, p := range c.Programs {
		var us int64
		if _, err := fmt.Sscanf(p.VerifierLog, "verification time %d usec", &us); err != nil {
			b.Fatalf("%s: the verifier's log is %q: %v", name, p.VerifierLog, err)
		}
		sum += time.Duration(us) * time.Microsecond
	}
	return sum
}

// The answer to the question whether there is a global membarrier agrees with calling it.
func TestHaveMembarrier(t *testing.T) {
	if asked, called := haveMembarrier() == nil, membarrier() == nil; asked != called {
		t.Errorf("asked: %v, called: %v", asked, called)
	}
}
