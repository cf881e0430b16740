package main

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/stats"
)

// side is one of the setups that are measured in turn: where its sockets live, what they dial, and
// which socket listens there.
type side struct {
	name string
	// open opens n fresh sockets in the side's cgroup and namespace.
	open     func(n, kind int) ([]int, error)
	dial     func() netip.AddrPort
	listener int
	// forgets: replies show the backend, not the frontend that was dialled.
	forgets bool
}

// bareSide dials from a cgroup without programs, servedSide from one with strait's. The process
// enters and leaves the cgroup for both, so that neither has the advantage of staying on its
// processor.
func (b *bench) bareSide(name string, listener int, dial func() netip.AddrPort) side {
	return side{name: name, open: b.madeIn(b.unserved), dial: dial, listener: listener}
}

func (b *bench) servedSide(name string, listener int, dial func() netip.AddrPort) side {
	return side{name: name, open: b.madeIn(b.served), dial: dial, listener: listener}
}

// floorSide dials from the cgroup with the smallest program that balances.
func (b *bench) floorSide(listener int, dial func() netip.AddrPort) side {
	return side{name: "floor", open: b.madeIn(b.floor), dial: dial, listener: listener, forgets: true}
}

// madeIn returns a function that opens sockets in a cgroup.
func (b *bench) madeIn(cgroup string) func(n, kind int) ([]int, error) {
	return func(n, kind int) (fds []int, err error) {
		err = b.in(cgroup, func() error { fds, err = sockets(n, kind); return err })
		return fds, err
	}
}

// batch is how many sockets of a side are opened at a time: so few that they are still in the
// caches when they are used.
const batch = 50

// turns measures the sides in alternation, sample by sample, for several rounds. It returns the
// median of each round, in nanoseconds, by side.
func turns(rounds, samples, kind int, sides []side, sample func(s *side, fd int) (time.Duration, error)) (map[string][]float64, error) {
	out := map[string][]float64{}
	for range rounds {
		runtime.GC() // now, and not in the middle of a round
		took := map[string][]float64{}
		for left := samples; left > 0; left -= batch {
			if err := turn(min(batch, left), kind, sides, sample, took); err != nil {
				return nil, err
			}
			// The order in which sockets are opened determines where they lie in memory.
			slices.Reverse(sides)
		}
		for name, t := range took {
			out[name] = append(out[name], stats.Median(t))
		}
	}
	return out, nil
}

// turn adds n samples of each side to took.
func turn(n, kind int, sides []side, sample func(s *side, fd int) (time.Duration, error), took map[string][]float64) (err error) {
	fds := make([][]int, len(sides))
	defer func() {
		for _, f := range fds {
			err = errors.Join(err, closeAll(f))
		}
	}()
	for i, s := range sides {
		if fds[i], err = s.open(n, kind); err != nil {
			return err
		}
	}
	for k := range n {
		for i := range sides {
			i = (i + k) % len(sides) // each side goes first equally often
			d, err := sample(&sides[i], fds[i][k])
			if err != nil {
				return fmt.Errorf("%s: %w", sides[i].name, err)
			}
			took[sides[i].name] = append(took[sides[i].name], ns(d))
		}
	}
	return nil
}

// timeConnect measures one connect(). The handshake is complete when it returns. The other end is
// accepted and reset outside the measured time.
func timeConnect(s *side, fd int) (time.Duration, error) {
	to := raw(s.dial())
	start := time.Now()
	err := connect(fd, to)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	peer, err := accept(s.listener)
	if err != nil {
		return 0, err
	}
	return took, unix.Close(peer)
}

func measureConnect(b *bench) error {
	w, done, err := b.loaded(l4.TCP)
	if err != nil {
		return err
	}
	unfloor, err := b.floorProgram(ebpf.AttachCGroupInet4Connect)
	if err != nil {
		return err
	}
	listener, err := listenTCP(podPort)
	if err != nil {
		return err
	}
	for _, p := range []pattern{hot, random} {
		medians, err := turns(b.size.rounds, b.size.samples, unix.SOCK_STREAM, []side{
			b.bareSide("direct", listener, func() netip.AddrPort { return p.direct(w) }),
			b.servedSide("missed", listener, func() netip.AddrPort { return p.direct(w) }),
			b.servedSide("through", listener, func() netip.AddrPort { return p.through(w) }),
			b.floorSide(listener, func() netip.AddrPort { return p.through(w) }),
		}, timeConnect)
		if err != nil {
			return err
		}
		suffix := p.suffix()
		err = errors.Join(
			b.setRatios(medians, "direct", map[string]string{
				"tcp_connect_ratio" + suffix:           "through",
				"tcp_connect_miss_ratio" + suffix:      "missed",
				floorPrefix + "connect_ratio" + suffix: "floor",
			}),
			b.setRounds("tcp_connect_direct_ns"+suffix, medians["direct"]),
		)
		if err != nil {
			return err
		}
	}
	return errors.Join(unix.Close(listener), unfloor(), done())
}
