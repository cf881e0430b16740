package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"strait.io/strait/datapath/socklb"
)

// options are the user's choices, from the environment.
type options struct {
	// Quick measures only a little. It is a smoke test; its numbers mean nothing.
	Quick bool
	// Kube measures the daemon in a Kubernetes cluster, which takes half an hour.
	Kube bool
	// JSON is the file for the metrics. Doc is the page that holds the table between two marks.
	JSON, Doc string
	// Phases are the phases to run; all if it is empty.
	Phases []string
}

func optionsFromEnv() options {
	return options{
		Quick: os.Getenv("BENCH_QUICK") == "1", Kube: os.Getenv("BENCH_KUBE") == "1", JSON: os.Getenv("BENCH_JSON"), Doc: os.Getenv("BENCH_DOC"),
		Phases: strings.FieldsFunc(os.Getenv("BENCH_PHASES"), func(r rune) bool { return r == ',' }),
	}
}

// check returns an error if the options cannot be carried out, before anything is measured.
func (o options) check() error {
	if o.Doc != "" && len(o.Phases) > 0 && !o.alone(phaseKube) && !o.alone(phaseReplication) && !o.alone(phaseCilium) {
		return fmt.Errorf("BENCH_DOC needs every phase, or only kube, replication or cilium: unset BENCH_PHASES")
	}
	for _, name := range o.Phases {
		if !slices.Contains(outerPhases, name) && !slices.ContainsFunc(phases, func(p phase) bool { return p.name == name }) {
			return fmt.Errorf("BENCH_PHASES: no phase %q; choose from %s", name, phaseNames())
		}
	}
	return nil
}

// outerPhases are the phases that the outer process runs itself. phaseProxy and phaseCilium need nft.
var outerPhases = []string{phaseDemo, phaseAttack, phaseReplication, phaseKube}

const (
	phaseDemo   = "demo"
	phaseAttack = "attack"
	phaseKube   = "kube"
	// phaseReplication is in a simulation, and with daemons of which only gossip runs.
	phaseReplication = "replication"
	phaseProxy       = "kube-proxy"
	phaseCilium      = "cilium"
)

func (o options) alone(phase string) bool { return len(o.Phases) == 1 && o.Phases[0] == phase }

func (o options) wantsKube() bool { return o.Kube || slices.Contains(o.Phases, phaseKube) }

// onlySides reports whether nothing of the datapath is measured.
func (o options) onlySides() bool { return o.alone(phaseKube) || o.alone(phaseReplication) }

// wantsAttack: it takes minutes however little is measured, so a quick run must ask for it.
func (o options) wantsAttack() bool {
	return o.wants(phaseAttack) && (!o.Quick || slices.Contains(o.Phases, phaseAttack))
}

// measured lists the metrics of a run of all phases.
func (o options) measured() []string {
	return slices.DeleteFunc(metricsOf(goals), func(m string) bool { return !o.wantsAttack() && slices.Contains(attackMetrics, m) })
}

func (o options) wants(phase string) bool {
	return len(o.Phases) == 0 || slices.Contains(o.Phases, phase)
}

// sizes say how much is measured.
type sizes struct {
	// maps has the sizes of strait's maps; 0 means the daemon's default.
	maps socklb.Config
	// frontends is how many frontends are loaded, backends how many backends each has.
	frontends, backends int
	// rounds is the number of rounds, samples the number of samples per side in each.
	rounds, samples int
	// nftRounds is rounds for kube-proxy's rules. chainServices is the number of services in the
	// older rule set, which loads slowly.
	nftRounds, chainServices int
	loads, flips             int
	// bigFlips is the number of flips of one frontend with bigBackends backends.
	bigFlips, bigBackends int
	// connects is the number of connects under churn. There are fewer if they take longer than
	// churnLimit.
	connects   int64
	churnLimit time.Duration
	torn       time.Duration
	opens      int
	restarts   int
	// forged is the number of attacks: records, statements, members and objects of a hostile writer.
	forged int
	// shares is the number of connects whose shares are compared with the plan.
	shares int
	// clustersets is the number of fail-overs and drains of a whole clusterset.
	clustersets int
}

func (o options) sizes() sizes {
	if o.Quick {
		return sizes{
			maps:      socklb.Config{MaxFrontends: 1 << 10, MaxBackends: 1 << 14, MaxSockets: 1 << 10},
			frontends: 200, backends: 10, rounds: 3, samples: 40, nftRounds: 3, chainServices: 20,
			loads: 1, flips: 5, bigFlips: 3, bigBackends: 5000, connects: 2000, churnLimit: 3 * time.Second,
			torn: 500 * time.Millisecond, opens: 2, restarts: 3, forged: 400, shares: 4000, clustersets: 1,
		}
	}
	return sizes{
		frontends: 10_000, backends: 10, rounds: 40, samples: 200, nftRounds: 40, chainServices: 1000,
		loads: 7, flips: 300, bigFlips: 100, bigBackends: 5000, connects: 250_000, churnLimit: 60 * time.Second,
		torn: 20 * time.Second, opens: 15, restarts: 20, forged: 1_000_000, shares: 100_000, clustersets: 5,
	}
}
