package main

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/stats"
)

// side is one of those that take turns: where its sockets live, what they dial, and who listens there.
type side struct {
	name string
	// open makes n fresh sockets in the side's place.
	open     func(n, kind int) ([]int, error)
	dial     func() netip.AddrPort
	listener int
}

// bareSide dials from a cgroup without programs, servedSide from one with strait's. Both are entered and left
// for it, so that neither has the luck of staying on its processor.
func (b *bench) bareSide(name string, listener int, dial func() netip.AddrPort) side {
	return side{name, b.madeIn(b.unserved), dial, listener}
}

func (b *bench) servedSide(name string, listener int, dial func() netip.AddrPort) side {
	return side{name, b.madeIn(b.served), dial, listener}
}

// madeIn makes sockets in a cgroup.
func (b *bench) madeIn(cgroup string) func(n, kind int) ([]int, error) {
	return func(n, kind int) (fds []int, err error) {
		err = b.in(cgroup, func() error { fds, err = sockets(n, kind); return err })
		return fds, err
	}
}

// batch is how many sockets of a side are made at a time: so few that they are still in the caches when used.
const batch = 50

// turns measures sides in alternation, sample by sample, for some rounds. It returns each side's median of
// each round.
func turns(rounds, samples, kind int, sides []side, sample func(s *side, fd int) (time.Duration, error)) (map[string][]float64, error) {
	out := map[string][]float64{}
	for range rounds {
		runtime.GC() // now, rather than in the middle
		took := map[string][]float64{}
		for left := samples; left > 0; left -= batch {
			if err := turn(min(batch, left), kind, sides, sample, took); err != nil {
				return nil, err
			}
			// Where sockets lie in memory follows from the order in which they are made.
			slices.Reverse(sides)
		}
		for name, t := range took {
			out[name] = append(out[name], stats.Median(t))
		}
	}
	return out, nil
}

// turn adds n samples of each side.
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
			i = (i + k) % len(sides) // each goes first equally often
			d, err := sample(&sides[i], fds[i][k])
			if err != nil {
				return fmt.Errorf("%s: %w", sides[i].name, err)
			}
			took[sides[i].name] = append(took[sides[i].name], ns(d))
		}
	}
	return nil
}

// timeConnect is one connect(). The handshake is done when it returns; the other end is taken and reset
// outside the clock.
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
	listener, err := listenTCP(podPort)
	if err != nil {
		return err
	}
	for _, p := range []pattern{hot, random} {
		medians, err := turns(b.size.rounds, b.size.samples, unix.SOCK_STREAM, []side{
			b.bareSide("direct", listener, func() netip.AddrPort { return p.direct(w) }),
			b.servedSide("missed", listener, func() netip.AddrPort { return p.direct(w) }),
			b.servedSide("through", listener, func() netip.AddrPort { return p.through(w) }),
		}, timeConnect)
		if err != nil {
			return err
		}
		suffix := map[string]string{"hot": "", "random": "_random"}[p.name]
		err = errors.Join(
			b.setRatios(medians, "direct", map[string]string{
				"tcp_connect_ratio" + suffix:      "through",
				"tcp_connect_miss_ratio" + suffix: "missed",
			}),
			b.setRounds("tcp_connect_direct_ns"+suffix, medians["direct"]),
		)
		if err != nil {
			return err
		}
	}
	return errors.Join(unix.Close(listener), done())
}
