package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/stats"
)

// restartSlots is the number of slots: so few that a frontend with as many backends never fits.
const restartSlots = 512

// restarted is the state of the phase: frontends whose sets change, clients, and the clients'
// results.
type restarted struct {
	b      *bench
	cfg    socklb.Config
	fronts []*churned
	steady []*steady
	tally  tally
	broken atomic.Int64
	// ready is how long each balancer took until its first desired state was in force, in ms.
	ready []float64
}

// measureRestart repeatedly kills and restarts a balancer process, while some clients connect and
// others hold connections. Each new process has a desired state other than the one in force.
func measureRestart(b *bench) error {
	r := &restarted{b: b, cfg: socklb.Config{
		Pins: filepath.Join(b.pins, "restart"), Cgroup: b.served, AllowVirtualRoot: true,
		MaxFrontends: 64, MaxBackends: restartSlots, MaxSockets: 1024,
	}}
	for number := range 2 {
		r.fronts = append(r.fronts,
			&churned{number: number, dialers: []dialer{overIPv4, overMapped}}, &churned{number: number, dialers: []dialer{overIPv6}})
	}
	server, err := servePods(podPort, 2)
	if err != nil {
		return err
	}
	stopSteady, err := r.serveSteady()
	if err != nil {
		return err
	}
	err = b.in(b.served, r.run)
	if err := errors.Join(err, stopSteady(), server.close(), socklb.CleanUp(r.cfg)); err != nil {
		return err
	}
	for _, e := range r.tally.examples {
		fmt.Fprintln(os.Stderr, "bench: restart:", e)
	}
	return errors.Join(
		b.set("restart_failed_connects", stats.Exactly(float64(r.tally.failed.Load()+r.tally.wrong.Load()))),
		b.set("restart_broken", stats.Exactly(float64(r.broken.Load()))),
		b.set("restart_connects", stats.Exactly(float64(r.tally.connects.Load()))),
		b.set("restart_long_lived", stats.Exactly(float64(len(r.steady)))),
		b.setRounds("restart_in_force_ms", r.ready),
	)
}

// run starts the first balancer and the clients, and then restarts the balancer while the clients
// run.
func (r *restarted) run() error {
	p, err := r.start(false)
	if err != nil {
		return err
	}
	defer func() { p.kill() }()
	if err := r.openSteady(); err != nil {
		return err
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				c := r.fronts[rand.IntN(len(r.fronts))]
				r.tally.check(c.dialers[rand.IntN(len(c.dialers))], c.number, churnPods, &c.history)
			}
		})
	}
	wg.Go(func() { r.useSteady(&stop) })
	for n := range r.b.size.restarts {
		time.Sleep(between(50, 200))
		p.kill()
		time.Sleep(between(10, 100)) // meanwhile membership has changed
		if n%2 == 1 {
			err = r.killEarly()
		}
		if err == nil {
			p, err = r.start(n%4 == 3)
		}
		if err != nil {
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	return err
}

func between(low, high int) time.Duration {
	return time.Duration(low+rand.IntN(high-low)) * time.Millisecond
}

// next draws the order for the next balancer: two desired states between which it flips. If full,
// both contain a frontend that does not fit.
func (r *restarted) next(full bool) order {
	o := order{Config: r.cfg, Wants: make([][]datapath.Frontend, 2)}
	for _, c := range r.fronts {
		either := uint64(0)
		for i := range o.Wants {
			members := rand.Uint64N(1<<churnPods-1) + 1
			either |= members
			d := c.dialers[0]
			o.Wants[i] = append(o.Wants[i], frontendOf(l4.New(d.vip(c.number), servicePort, l4.TCP), d, c.number, members))
		}
		c.history.want(either)
	}
	for i := range o.Wants {
		o.Wants[i] = append(o.Wants[i], steadyFrontends()...)
		if full {
			big := tooBig(restartSlots)
			o.TooBig = big.Addr.String()
			o.Wants[i] = append(o.Wants[i], big)
		}
	}
	return o
}

// start starts a balancer, waits until its first desired state is in force, and checks the maps.
func (r *restarted) start(full bool) (*process, error) {
	o := r.next(full)
	began := time.Now()
	p, err := startBalancer(o)
	if err == nil {
		err = p.wait()
	}
	if err != nil {
		if p != nil {
			p.kill()
		}
		return nil, err
	}
	r.ready = append(r.ready, time.Since(began).Seconds()*1e3)
	for _, c := range r.fronts {
		c.history.apply()
	}
	if err := r.checkMaps(o); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// killEarly starts a balancer and kills it before it is ready, or just after.
func (r *restarted) killEarly() error {
	p, err := startBalancer(r.next(false))
	if err != nil {
		return err
	}
	time.Sleep(between(0, 80))
	p.kill()
	return nil
}

// checkMaps compares the pinned maps with the order: each frontend must have one of its two sets.
func (r *restarted) checkMaps(o order) error {
	have, err := inspect.Read(r.cfg.Pins)
	if err != nil {
		return err
	}
	held := map[l4.Addr]datapath.Frontend{}
	for _, f := range have {
		held[f.Addr] = f
	}
	for i, a := range o.Wants[0] {
		if a.Addr.String() == o.TooBig {
			continue
		}
		f, ok := held[a.Addr]
		if !ok || !f.Equal(a) && !f.Equal(o.Wants[1][i]) {
			return fmt.Errorf("after a restart %s holds %v, want %v or %v", a.Addr, f.Backends, a.Backends, o.Wants[1][i].Backends)
		}
	}
	return nil
}
