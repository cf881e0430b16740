package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/bench/stats"
)

// resultFile is the file in the scratch directory by which the inner process passes its result to
// the outer.
const resultFile = "result.json"

// result is everything that a bench has measured.
type result struct {
	Machine machine            `json:"machine"`
	Metrics map[string]summary `json:"metrics"`
	// Skipped holds why metrics with a prefix were not measured.
	Skipped map[string]string `json:"skipped,omitempty"`
	Took    time.Duration     `json:"took"`
}

// summary is a stats.Summary that can be encoded as JSON.
type summary struct {
	Median, Q1, Q3 float64
	N              int
}

// bench is the state that all phases share.
type bench struct {
	*place
	size   sizes
	result *result
}

// phase is a part of the bench that can be run on its own.
type phase struct {
	name string
	run  func(*bench) error
}

// phases run in this order. kube-proxy's rules, which Cilium is compared with too, and IPVS come
// last, because once either is loaded in any namespace, every packet on the machine passes through
// netfilter.
var phases = []phase{
	{"memory", measureMemory},
	{"load", measureLoad},
	{"connect", measureConnect},
	{"udp", measureUDP},
	{"stream", measureStream},
	{"hooks", measureHooks},
	{"torn", measureTorn},
	{"churn", measureChurn},
	{"open", measureOpen},
	{"restart", measureRestart},
	{"authority", measureAuthority},
	{"locality", measureLocality},
	{phaseProxy, measureProxy},
	{phaseCilium, measureCilium},
	{"ipvs", measureIPVS},
}

func phaseNames() string {
	var names []string
	for _, p := range phases {
		names = append(names, p.name)
	}
	return strings.Join(append(names, outerPhases...), ",")
}

// measure is the inner process: it runs the phases and writes their results.
func measure() error {
	exitWithParent(os.Stdin)
	p, err := newPlace()
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	// Clients and servers block in raw system calls that the runtime does not know about. Give each
	// of them a P, and let the kernel schedule the threads on the real processors.
	runtime.GOMAXPROCS(16)
	start := time.Now()
	o := optionsFromEnv()
	b := &bench{place: p, size: o.sizes(), result: &result{Machine: thisMachine(), Metrics: map[string]summary{}}}
	for _, phase := range phases {
		if !o.wants(phase.name) {
			continue
		}
		at := time.Now()
		if err := phase.run(b); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		fmt.Fprintf(os.Stderr, "bench: %-12s %5.1f s\n", phase.name, time.Since(at).Seconds())
	}
	b.result.Took = time.Since(start)
	b.result.Machine.LoadAfter = loadAverage()
	text, err := json.Marshal(b.result)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, resultFile), text, 0o600)
}

// set records a metric.
func (b *bench) set(name string, s stats.Summary) error {
	if math.IsNaN(s.Median) || math.IsInf(s.Median, 0) {
		return fmt.Errorf("metric %s is %v", name, s.Median)
	}
	b.result.Metrics[name] = summary(s)
	return nil
}

// skip records that this machine cannot measure the metrics that begin with a prefix.
func (b *bench) skip(prefix string, why error) {
	if b.result.Skipped == nil {
		b.result.Skipped = map[string]string{}
	}
	b.result.Skipped[prefix+"_"] = why.Error()
}

// setRounds records the summary of rounds as a metric.
func (b *bench) setRounds(name string, rounds []float64) error {
	return b.set(name, stats.Summarize(rounds))
}

// setRatios records, for each metric in metrics, the ratio of the side that it names to the side
// under.
func (b *bench) setRatios(sides map[string][]float64, under string, metrics map[string]string) error {
	for metric, over := range metrics {
		if err := b.setRounds(metric, stats.Ratios(sides[over], sides[under])); err != nil {
			return err
		}
	}
	return nil
}

// loaded opens strait on the served cgroup and loads a whole world, with all features on: a cgroup
// has opted out, so that each hit checks whether the caller is in it.
func (b *bench) loaded(proto l4.Proto) (*world, func() error, error) {
	lb, done, err := b.balancer("strait", b.served, b.size.maps)
	if err != nil {
		return nil, nil, err
	}
	w := newWorld(proto, b.size.frontends, b.size.backends)
	if err := problem.Strict(lb.Reconcile(w.frontends, true)); err != nil {
		return nil, nil, fmt.Errorf("load: %w", err)
	}
	if err := lb.SetOptOut([]string{b.optedOut}); err != nil {
		return nil, nil, err
	}
	return w, done, nil
}
