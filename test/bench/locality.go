package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"runtime"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/bench/stats"
)

// measureLocality measures how a node chooses between endpoints: what the choice costs, how often it
// is written while a zone flaps, and whether the kernel draws what it says.
func measureLocality(b *bench) error {
	busy := newClusterset(b.size.frontends, b.size.backends).changed(every, thirdUnready).changed(every, weigh)
	return errors.Join(b.planOne(busy), b.planWhatIf(busy), b.planFlaps(), b.measureShares())
}

// planOne measures the plan after one pod has changed, while every service has weights and spills.
func (b *bench) planOne(s clusterset) error {
	now := time.Unix(1_000_000, 0)
	first, past := plan.Plan(inputs(s, now), plan.Past{})
	if got := len(first.Desired.Frontends); got != b.size.frontends {
		return fmt.Errorf("the plan has %d frontends, want %d", got, b.size.frontends)
	}
	one := func(o clustermesh.Origin) bool { return o == clustermesh.Origin{Cluster: "a", Node: "n1"} }
	var took []float64
	for n := range b.size.flips {
		s = s.changed(one, func(c *clustermesh.Content) { setReady(&c.Endpoints[1], n%2 > 0) })
		now = now.Add(time.Second)
		in := inputs(s, now)
		start := time.Now()
		_, past = plan.Plan(in, past)
		took = append(took, time.Since(start).Seconds()*1e3)
	}
	return errors.Join(b.setRounds("plan_ms", took), b.set("plan_p99_ms", stats.Exactly(stats.Quantile(took, 0.99))))
}

// planWhatIf measures the answer to what all services would do without one of the clusters.
func (b *bench) planWhatIf(s clusterset) error {
	change, err := plan.ParseChange("cluster a down")
	if err != nil {
		return err
	}
	var took []float64
	for range b.size.loads {
		runtime.GC()
		start := time.Now()
		then, err := change.Apply(s.State)
		if err != nil {
			return err
		}
		plan.Plan(inputs(clusterset{then}, time.Time{}), plan.Past{})
		took = append(took, time.Since(start).Seconds()*1e3)
	}
	return b.setRounds("what_if_ms", took)
}

// planFlaps counts how often a frontend is written while all pods of the node's cluster come and go. It
// records the most of some rhythms. The time is not the machine's.
func (b *bench) planFlaps() error {
	const during, tick = time.Minute, 100 * time.Millisecond
	most := 0.0
	for _, rhythm := range []struct{ up, down time.Duration }{
		{tick, tick}, {500 * time.Millisecond, 500 * time.Millisecond}, {1100 * time.Millisecond, tick},
		{2 * time.Second, tick}, {2 * time.Second, 2 * time.Second}, {10 * time.Second, 10 * time.Second},
	} {
		s, start := newClusterset(1, b.size.backends), time.Unix(1_000_000, 0)
		var past plan.Past
		var last []datapath.Frontend
		writes := -1 // the first is no change
		for at := time.Duration(0); at < during; at += tick {
			s = s.changed(inA, func(c *clustermesh.Content) {
				for i := range c.Endpoints {
					setReady(&c.Endpoints[i], at%(rhythm.up+rhythm.down) < rhythm.up)
				}
			})
			var r plan.Result
			r, past = plan.Plan(inputs(s, start.Add(at)), past)
			if is := r.Desired.Frontends; !reflect.DeepEqual(last, is) {
				last = is
				writes++
			}
		}
		most = max(most, float64(writes)/during.Seconds())
	}
	return b.set("flap_writes_per_s", stats.Exactly(most))
}

func inA(o clustermesh.Origin) bool { return o.Cluster == "a" }

// measureShares plans a service that spills and one with weights, makes many connections to each, and
// compares which pods answer with what the plan says.
func (b *bench) measureShares() error {
	s := newClusterset(2, 20).changed(every, thirdUnready)
	s = s.changed(every, func(c *clustermesh.Content) {
		if len(c.Exports) > 0 {
			only := clustermesh.Content{Exports: c.Exports[1:]}
			weigh(&only)
		}
	})
	r, _ := plan.Plan(inputs(s, time.Time{}), plan.Past{})
	lb, done, err := b.balancer("shares", b.served, b.size.maps)
	if err != nil {
		return err
	}
	if err := problem.Strict(lb.Reconcile(r.Desired.Frontends, true)); err != nil {
		return errors.Join(err, done())
	}
	server, err := servePods(podPort, 2)
	if err != nil {
		return errors.Join(err, done())
	}
	worst := 0.0
	err = b.in(b.served, func() error {
		for _, i := range r.Imports {
			off, err := shareError(i.Frontends()[0], b.size.shares)
			if err != nil {
				return fmt.Errorf("%s: %w", i.Service, err)
			}
			worst = max(worst, off)
		}
		return nil
	})
	return errors.Join(err, server.close(), done(), b.set("share_error_pct", stats.Exactly(worst)))
}

// shareError connects to a frontend, and returns by how much the share of any of its endpoints differs
// from the one that is explained, in percentage points.
func shareError(f plan.Frontend, connects int) (worst float64, err error) {
	counted, err := countAnswers(netip.AddrPortFrom(f.Addr.IP, f.Addr.Port), connects)
	if err != nil {
		return 0, err
	}
	total, shared := 0.0, 0
	for _, v := range f.Choice.Verdicts {
		if v.Weight > 0 {
			shared++
		}
		total += float64(v.Weight)
	}
	if shared < 3 {
		return 0, fmt.Errorf("%d endpoints share the connections: too few to compare", shared)
	}
	for _, v := range f.Choice.Verdicts {
		off := float64(counted[v.Addr.Addr()])/float64(connects) - float64(v.Weight)/total
		worst = max(worst, 100*math.Abs(off))
		delete(counted, v.Addr.Addr())
	}
	if len(counted) > 0 {
		return 0, fmt.Errorf("pods that are not explained answered: %v", counted)
	}
	return worst, nil
}

// countAnswers makes connections from two threads and counts the pods that answer.
func countAnswers(to netip.AddrPort, connects int) (map[netip.Addr]int, error) {
	const threads = 2
	counted, errs := map[netip.Addr]int{}, make([]error, threads)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			for n := t; n < connects && errs[t] == nil; n += threads {
				var pod netip.Addr
				pod, errs[t] = overIPv4.askAt(to)
				mu.Lock()
				counted[pod]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return counted, errors.Join(errs...)
}
