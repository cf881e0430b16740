package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"strait.io/strait/datapath/socklb"
)

// options are what the user may choose, by the environment.
type options struct {
	// Quick measures little: a smoke test, whose numbers mean nothing.
	Quick bool
	// Kube measures the daemon in a Kubernetes cluster, which takes half an hour.
	Kube bool
	// JSON is where the metrics go; Doc is the page that holds the table between two marks.
	JSON, Doc string
	// Phases are those that are run; all if none are named.
	Phases []string
}

func optionsFromEnv() options {
	return options{
		Quick: os.Getenv("BENCH_QUICK") == "1", Kube: os.Getenv("BENCH_KUBE") == "1", JSON: os.Getenv("BENCH_JSON"), Doc: os.Getenv("BENCH_DOC"),
		Phases: strings.FieldsFunc(os.Getenv("BENCH_PHASES"), func(r rune) bool { return r == ',' }),
	}
}

// check finds what cannot be done, before anything is measured.
func (o options) check() error {
	if o.Doc != "" && len(o.Phases) > 0 && !o.kubeAlone() {
		return fmt.Errorf("BENCH_DOC needs every phase, or kube alone: leave BENCH_PHASES out")
	}
	for _, name := range o.Phases {
		if name != phaseKube && !slices.ContainsFunc(phases, func(p phase) bool { return p.name == name }) {
			return fmt.Errorf("BENCH_PHASES: there is no phase %q: name some of %s", name, phaseNames())
		}
	}
	return nil
}

// phaseKube is the part that is no phase of the inner process.
const phaseKube = "kube"

func (o options) kubeAlone() bool { return len(o.Phases) == 1 && o.Phases[0] == phaseKube }

func (o options) wantsKube() bool { return o.Kube || slices.Contains(o.Phases, phaseKube) }

func (o options) wants(phase string) bool {
	return len(o.Phases) == 0 || slices.Contains(o.Phases, phase)
}

// sizes say how much is measured.
type sizes struct {
	// maps are the sizes of strait's maps; those of the daemon where they are 0.
	maps socklb.Config
	// frontends and backends each are the world that is loaded.
	frontends, backends int
	// rounds of samples per side.
	rounds, samples int
	// chainServices is the size of the older rule set, whose loading is slow.
	nftRounds, chainServices int
	loads, flips             int
	// bigFlips are flips of one frontend with bigBackends.
	bigFlips, bigBackends int
	// connects under churn, or fewer when churnLimit is over.
	connects   int64
	churnLimit time.Duration
	torn       time.Duration
	restarts   int
}

func (o options) sizes() sizes {
	if o.Quick {
		return sizes{
			maps:      socklb.Config{MaxFrontends: 1 << 10, MaxBackends: 1 << 14, MaxSockets: 1 << 10},
			frontends: 200, backends: 10, rounds: 3, samples: 40, nftRounds: 3, chainServices: 20,
			loads: 1, flips: 5, bigFlips: 3, bigBackends: 5000, connects: 2000, churnLimit: 3 * time.Second,
			torn: 500 * time.Millisecond, restarts: 3,
		}
	}
	return sizes{
		frontends: 10_000, backends: 10, rounds: 40, samples: 200, nftRounds: 40, chainServices: 1000,
		loads: 7, flips: 300, bigFlips: 100, bigBackends: 5000, connects: 250_000, churnLimit: 60 * time.Second,
		torn: 20 * time.Second, restarts: 20,
	}
}
