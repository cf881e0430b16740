package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// measureOpen measures how long a balancer takes to open: on a clean node, and on the pins of its
// predecessor, which hold a whole world.
func measureOpen(b *bench) error {
	w := newWorld(l4.TCP, b.size.frontends, b.size.backends)
	var fresh, again, verifier []float64
	for range b.size.opens {
		first, second, err := b.openTwice(w)
		if err != nil {
			return err
		}
		took, err := verifierTime()
		if err != nil {
			return err
		}
		fresh, again, verifier = append(fresh, ms(first)), append(again, ms(second)), append(verifier, ms(took))
	}
	return errors.Join(
		b.setRounds("open_new_ms", fresh),
		b.setRounds("open_ms", again),
		b.setRounds("open_verifier_ms", verifier),
	)
}

// openTwice opens a balancer without pins, fills it, and opens another on its pins.
func (b *bench) openTwice(w *world) (first, second time.Duration, err error) {
	cfg := b.size.maps
	cfg.Pins, cfg.Cgroup, cfg.AllowVirtualRoot = filepath.Join(b.pins, "open"), b.served, true
	lb, first, err := timeOpen(cfg)
	if err != nil {
		return 0, 0, err
	}
	if err := errors.Join(problem.Strict(lb.Reconcile(w.frontends, true)), lb.Close()); err != nil {
		return 0, 0, err
	}
	lb, second, err = timeOpen(cfg)
	if err != nil {
		return 0, 0, err
	}
	return first, second, errors.Join(lb.Close(), socklb.CleanUp(cfg))
}

func timeOpen(cfg socklb.Config) (*socklb.LB, time.Duration, error) {
	start := time.Now()
	lb, err := socklb.Open(cfg)
	return lb, time.Since(start), err
}

// verification is a line of the verifier's log.
var verification = regexp.MustCompile(`verification time (\d+) usec`)

// verifierTime loads the balancer's programs, attached to nothing, and adds up what the verifier
// says that it took for each. Open does not ask the verifier, so it is asked for another load.
func verifierTime() (sum time.Duration, err error) {
	spec, err := layout.Spec()
	if err != nil {
		return 0, err
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
	if err != nil {
		return 0, fmt.Errorf("load the programs with the verifier's log: %w", err)
	}
	defer c.Close()
	for name, p := range c.Programs {
		found := verification.FindStringSubmatch(p.VerifierLog)
		if found == nil {
			return 0, fmt.Errorf("the verifier's log of %s has no time: %q", name, p.VerifierLog)
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * time.Microsecond
	}
	return sum, nil
}

// ms returns a duration in milliseconds.
func ms(d time.Duration) float64 { return ns(d) / 1e6 }
