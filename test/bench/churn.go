package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/bench/stats"
)

const (
	churnPods = 6
	// churnEvery is the time from one flip of all frontends to the next: 1200 flips of each per
	// second, if the machine can.
	churnEvery = time.Second / 1200
)

// churned is a frontend whose set of backends changes all the time.
type churned struct {
	number  int
	dialers []dialer
	history history
}

// next draws another set at random, never an empty one, and returns the frontend with it.
func (c *churned) next() datapath.Frontend {
	members := rand.Uint64N(1<<churnPods-1) + 1
	c.history.want(members)
	return frontendOf(l4.New(c.dialers[0].vip(c.number), servicePort, l4.TCP), c.dialers[0], c.number, members)
}

// frontendOf returns a frontend with those of its pods whose bits are set in members.
func frontendOf(at l4.Addr, d dialer, number int, members uint64) datapath.Frontend {
	f := datapath.Frontend{Addr: at}
	for pod := range churnPods {
		if members&(1<<pod) != 0 {
			f.Backends = append(f.Backends, datapath.Backend{IP: d.pod(number, pod), Port: podPort, Weight: 1 + rand.Uint32N(3)})
		}
	}
	return f
}

// measureChurn connects to frontends that flip, over every kind of socket, and checks which pod
// answers.
func measureChurn(b *bench) error {
	// Few slots, so that blocks are soon reused.
	lb, done, err := b.balancer("churn", b.served, socklb.Config{MaxFrontends: 64, MaxBackends: 4096, MaxSockets: 1024})
	if err != nil {
		return err
	}
	fronts := []*churned{
		{number: 0, dialers: []dialer{overIPv4, overMapped}}, {number: 1, dialers: []dialer{overIPv4, overMapped}},
		{number: 0, dialers: []dialer{overIPv6}}, {number: 1, dialers: []dialer{overIPv6}},
	}
	update := func(want []datapath.Frontend) error { return problem.Strict(lb.Reconcile(want, true)) }
	return errors.Join(b.measureFlips("", b.served, update, fronts), done())
}

// measureFlips flips the frontends of the balancer on a cgroup, and records what happens to connects
// meanwhile.
func (b *bench) measureFlips(prefix, cgroup string, update func([]datapath.Frontend) error, fronts []*churned) error {
	server, err := servePods(podPort, 2)
	if err != nil {
		return err
	}
	if err := flipAll(update, fronts); err != nil {
		return err
	}
	var t tally
	var flips int64
	var took time.Duration
	err = b.in(cgroup, func() error {
		start := time.Now()
		flips, err = churn(b, update, fronts, &t)
		took = time.Since(start)
		return err
	})
	if err := errors.Join(err, server.close()); err != nil {
		return err
	}
	for _, e := range t.examples {
		fmt.Fprintf(os.Stderr, "bench: %schurn: %s\n", prefix, e)
	}
	return errors.Join(
		b.set(prefix+"churn_failed_connects", stats.Exactly(float64(t.failed.Load()))),
		b.set(prefix+"churn_wrong_backend", stats.Exactly(float64(t.wrong.Load()))),
		b.set(prefix+"churn_connects", stats.Exactly(float64(t.connects.Load()))),
		b.set(prefix+"churn_flips_per_s", stats.Exactly(float64(flips)*float64(len(fronts))/took.Seconds())),
	)
}

// churn flips all frontends for as long as clients connect, and returns how often each one flipped.
func churn(b *bench, update func([]datapath.Frontend) error, fronts []*churned, t *tally) (flips int64, err error) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	deadline := time.Now().Add(b.size.churnLimit)
	for range 3 {
		wg.Go(func() {
			for !stop.Load() && t.connects.Load() < b.size.connects && time.Now().Before(deadline) {
				c := fronts[rand.IntN(len(fronts))]
				t.check(c.dialers[rand.IntN(len(c.dialers))], c.number, churnPods, &c.history)
			}
			stop.Store(true)
		})
	}
	for next := time.Now(); !stop.Load() && err == nil; flips++ {
		err = flipAll(update, fronts)
		next = next.Add(churnEvery)
		time.Sleep(time.Until(next)) // returns at once if next has passed
	}
	stop.Store(true)
	wg.Wait()
	return flips, err
}

// flipAll gives each frontend its next set.
func flipAll(update func([]datapath.Frontend) error, fronts []*churned) error {
	var want []datapath.Frontend
	for _, c := range fronts {
		want = append(want, c.next())
	}
	if err := update(want); err != nil {
		return err
	}
	for _, c := range fronts {
		c.history.apply()
	}
	return nil
}
