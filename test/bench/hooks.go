package main

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/stats"
)

// hookSide is a program and sockets that make it run: those of the cgroup that it is attached to.
type hookSide struct {
	name             string
	program, release *ebpf.Program
	cgroup           string
	dial             func() netip.AddrPort
}

// hook is what is measured of one kind of socket.
type hook struct {
	kind int
	at   ebpf.AttachType
	// run makes the program of a fresh socket run once, and cleans up at the other end.
	run func(fd int, to netip.AddrPort) error
}

// hookTimes measures the mean run time of each side's program and of its sock_release, in ns, in
// alternation batch by batch. The kernel's clock is per program, so sides cannot take turns by sample.
func (b *bench) hookTimes(h hook, sides []hookSide) (run, release map[string][]float64, err error) {
	run, release = map[string][]float64{}, map[string][]float64{}
	for round := range b.size.rounds {
		runtime.GC()
		for i := range sides {
			s := sides[(i+round)%len(sides)]
			ran, released, err := b.hookBatch(h, s)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", s.name, err)
			}
			run[s.name] = append(run[s.name], ran)
			release[s.name] = append(release[s.name], released)
		}
	}
	return run, release, nil
}

// hookBatch makes, uses and closes one socket after the other, as an application does.
func (b *bench) hookBatch(h hook, s hookSide) (ran, released float64, err error) {
	err = b.in(s.cgroup, func() error {
		released, err = perRun(s.release, func() error {
			ran, err = perRun(s.program, func() error {
				for range b.size.samples * 2 {
					if err := h.once(s.dial()); err != nil {
						return err
					}
				}
				return nil
			})
			return err
		})
		return err
	})
	return ran, released, err
}

// once makes the program of a fresh socket run, and closes the socket.
func (h hook) once(to netip.AddrPort) error {
	fds, err := sockets(1, h.kind)
	if err != nil {
		return err
	}
	return errors.Join(h.run(fds[0], to), unix.Close(fds[0]))
}

// hookSides are the floor, a miss and a hit.
func (b *bench) hookSides(h hook, w *world, p pattern) ([]hookSide, error) {
	ours, err := onlyProgram(b.served, h.at)
	if err != nil {
		return nil, err
	}
	empty, err := onlyProgram(b.empty, h.at)
	if err != nil {
		return nil, err
	}
	release, err := onlyProgram(b.served, ebpf.AttachCgroupInetSockRelease)
	if err != nil {
		return nil, err
	}
	nothing, err := onlyProgram(b.empty, ebpf.AttachCgroupInetSockRelease)
	if err != nil {
		return nil, err
	}
	elsewhere := func() netip.AddrPort { return p.fixed(w) }
	return []hookSide{
		{"empty", empty, nothing, b.empty, elsewhere},
		{"miss", ours, release, b.served, elsewhere},
		{"hit", ours, release, b.served, func() netip.AddrPort { return p.through(w) }},
	}, nil
}

// measureHooks asks what the programs cost: the kernel clocks each of their runs.
func measureHooks(b *bench) error {
	for _, e := range []struct {
		name string
		kind ebpf.ProgramType
		at   ebpf.AttachType
	}{
		{"empty_connect", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect},
		{"empty_send", ebpf.CGroupSockAddr, ebpf.AttachCGroupUDP4Sendmsg},
		{"empty_release", ebpf.CGroupSock, ebpf.AttachCgroupInetSockRelease},
	} {
		if err := b.emptyProgram(e.name, b.empty, e.kind, e.at); err != nil {
			return err
		}
	}
	stop, err := countRunTime()
	if err != nil {
		return err
	}
	if err := measureConnectHook(b); err != nil {
		return err
	}
	return errors.Join(measureSendHook(b), stop())
}

func measureConnectHook(b *bench) error {
	listener, err := listenTCP(podPort)
	if err != nil {
		return err
	}
	tcp := hook{unix.SOCK_STREAM, ebpf.AttachCGroupInet4Connect, func(fd int, to netip.AddrPort) error {
		if err := connect(fd, raw(to)); err != nil {
			return err
		}
		peer, err := accept(listener)
		return errors.Join(err, unix.Close(peer))
	}}
	if err := measureHook(b, tcp, l4.TCP, "hit_lookups_"); err != nil {
		return err
	}
	// The same program with less kernel code between its runs, so that its own is still in the caches.
	warm := hook{unix.SOCK_DGRAM, tcp.at, func(fd int, to netip.AddrPort) error { return connect(fd, raw(to)) }}
	err = measureHook(b, warm, l4.UDP, "udp_connect_hit_lookups_")
	return errors.Join(err, unix.Close(listener))
}

func measureSendHook(b *bench) error {
	server, err := newEcho()
	if err != nil {
		return err
	}
	udp := hook{unix.SOCK_DGRAM, ebpf.AttachCGroupUDP4Sendmsg, func(fd int, to netip.AddrPort) error {
		err := send(fd, []byte("?"), raw(to))
		server.drain()
		return err
	}}
	err = measureHook(b, udp, l4.UDP, "udp_hit_lookups_")
	return errors.Join(err, unix.Close(server.fd))
}

// measureHook writes the metric of each pattern in lookups, and all that it is made of in ns.
func measureHook(b *bench, h hook, proto l4.Proto, metric string) error {
	w, done, err := b.loaded(proto)
	if err != nil {
		return err
	}
	for _, p := range []pattern{hot, random} {
		sides, err := b.hookSides(h, w, p)
		if err != nil {
			return err
		}
		run, release, err := b.hookTimes(h, sides)
		if err != nil {
			return err
		}
		if err := b.setHook(metric+p.name, run, release); err != nil {
			return err
		}
	}
	return done()
}

func (b *bench) setHook(metric string, run, release map[string][]float64) error {
	lookups, err := stats.Lookups(run["hit"], run["miss"], run["empty"])
	if err != nil {
		return err
	}
	errs := []error{b.setRounds(metric, lookups)}
	for side := range run {
		errs = append(errs, b.setRounds(metric+"_"+side+"_ns", run[side]), b.setRounds(metric+"_release_"+side+"_ns", release[side]))
	}
	return errors.Join(errs...)
}
