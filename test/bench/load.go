package main

import (
	"fmt"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/bench/stats"
)

// measureLoad measures how long a change of the desired state takes until it is in force.
func measureLoad(b *bench) error {
	var loads []float64
	for range b.size.loads {
		took, err := b.load(newWorld(l4.TCP, b.size.frontends, b.size.backends))
		if err != nil {
			return err
		}
		loads = append(loads, took.Seconds())
	}
	if err := b.setRounds("load_100k_s", loads); err != nil {
		return err
	}
	w := newWorld(l4.TCP, b.size.frontends, b.size.backends)
	if err := b.flip(w, 0, b.size.flips, "flip_one"); err != nil {
		return err
	}
	big := newWorld(l4.TCP, 1, b.size.bigBackends).frontends[0]
	big.Addr.Port++
	w.frontends = append(w.frontends, big)
	return b.flip(w, len(w.frontends)-1, b.size.bigFlips, "flip_5000")
}

// load measures how long it takes to fill empty maps.
func (b *bench) load(w *world) (time.Duration, error) {
	lb, done, err := b.balancer("strait", b.served, b.size.maps)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := problem.Strict(lb.Reconcile(w.frontends, true)); err != nil {
		return 0, fmt.Errorf("load: %w", err)
	}
	took := time.Since(start)
	return took, done()
}

// flip changes one backend of a frontend repeatedly and measures each change. The balancer gets the
// whole desired state each time, as from the daemon: sorted, and unchanged frontends keep their
// lists of backends.
func (b *bench) flip(w *world, at, flips int, metric string) error {
	lb, done, err := b.balancer("strait", b.served, b.size.maps)
	if err != nil {
		return err
	}
	if err := problem.Strict(lb.Reconcile(w.frontends, true)); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	var took []float64
	for n := range flips {
		want := w.changed(at, n)
		d, err := reconcile(lb, want)
		if err != nil {
			return err
		}
		took = append(took, d.Seconds()*1e3)
	}
	if err := b.setRounds(metric+"_ms", took); err != nil {
		return err
	}
	if err := b.set(metric+"_p99_ms", stats.Exactly(stats.Quantile(took, 0.99))); err != nil {
		return err
	}
	return done()
}

func reconcile(lb *socklb.LB, want []datapath.Frontend) (time.Duration, error) {
	start := time.Now()
	err := problem.Strict(lb.Reconcile(want, true))
	return time.Since(start), err
}
