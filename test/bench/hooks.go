package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"runtime"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/stats"
)

// hookSide is a program and the cgroup that it is attached to, whose sockets make it run.
type hookSide struct {
	name             string
	program, release *ebpf.Program
	cgroup           string
	dial             func() netip.AddrPort
}

// hook is the hook that is measured for one kind of socket.
type hook struct {
	kind int
	at   ebpf.AttachType
	// run makes the program run once for a fresh socket, and cleans up at the other end.
	run func(fd int, to netip.AddrPort) error
}

// hookTimes measures the mean run time of each side's program and of its sock_release, in ns. Sides
// alternate batch by batch: the kernel adds up run time per program, so they cannot alternate by
// sample. On a machine that is so busy that the lookup cannot be distinguished from the empty program,
// there are up to ten times as many rounds.
func (b *bench) hookTimes(h hook, sides []hookSide) (run, release map[string][]float64, err error) {
	run, release = map[string][]float64{}, map[string][]float64{}
	enough := func(rounds int) bool {
		return rounds >= b.size.rounds && (stats.Distinct(run["lookup"], run["empty"]) || rounds >= 10*b.size.rounds)
	}
	for round := 0; !enough(round); round++ {
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

// hookBatch opens, uses and closes one socket after the other, as an application does.
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

// once opens a socket, makes the program run for it, and closes it.
func (h hook) once(to netip.AddrPort) error {
	fds, err := sockets(1, h.kind)
	if err != nil {
		return err
	}
	return errors.Join(h.run(fds[0], to), unix.Close(fds[0]))
}

// hookSides returns the sides: an empty program as zero, one hash lookup as the unit, a miss, a hit,
// and a hit of the smallest program.
func (b *bench) hookSides(h hook, w *world, p pattern) ([]hookSide, error) {
	ours, err := onlyProgram(b.served, h.at)
	if err != nil {
		return nil, err
	}
	empty, err := onlyProgram(b.empty, h.at)
	if err != nil {
		return nil, err
	}
	lookup, err := onlyProgram(b.lookup, h.at)
	if err != nil {
		return nil, err
	}
	floor, err := onlyProgram(b.floor, h.at)
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
	unused, err := onlyProgram(b.lookup, ebpf.AttachCgroupInetSockRelease)
	if err != nil {
		return nil, err
	}
	forgets, err := onlyProgram(b.floor, ebpf.AttachCgroupInetSockRelease)
	if err != nil {
		return nil, err
	}
	elsewhere := func() netip.AddrPort { return p.fixed(w) }
	frontend := func() netip.AddrPort { return p.through(w) }
	return []hookSide{
		{"empty", empty, nothing, b.empty, elsewhere},
		{"lookup", lookup, unused, b.lookup, elsewhere},
		{"miss", ours, release, b.served, elsewhere},
		{"hit", ours, release, b.served, frontend},
		{"floor", floor, forgets, b.floor, frontend},
	}, nil
}

// measureHooks measures what the programs cost, by the kernel's own measurement of their run time.
func measureHooks(b *bench) error {
	stop, err := b.countHooks()
	if err != nil {
		return err
	}
	return errors.Join(measureConnectHook(b), measureSendHook(b), stop())
}

// countHooks attaches the empty programs, and makes the kernel measure the run time of all programs
// until the returned function is called.
func (b *bench) countHooks() (func() error, error) {
	for _, e := range []struct {
		name, cgroup string
		kind         ebpf.ProgramType
		at           ebpf.AttachType
	}{
		{"empty_connect", b.empty, ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect},
		{"empty_send", b.empty, ebpf.CGroupSockAddr, ebpf.AttachCGroupUDP4Sendmsg},
		{"empty_release", b.empty, ebpf.CGroupSock, ebpf.AttachCgroupInetSockRelease},
		{"floor_release", b.floor, ebpf.CGroupSock, ebpf.AttachCgroupInetSockRelease},
		{"lookup_release", b.lookup, ebpf.CGroupSock, ebpf.AttachCgroupInetSockRelease},
	} {
		err := b.emptyProgram(e.name, e.cgroup, e.kind, e.at)
		if err != nil && !errors.Is(err, fs.ErrExist) { // of another phase
			return nil, err
		}
	}
	return countRunTime()
}

// tcpHook makes the connect() program run for sockets that are accepted from the listener.
func tcpHook(listener int) hook {
	return hook{unix.SOCK_STREAM, ebpf.AttachCGroupInet4Connect, func(fd int, to netip.AddrPort) error {
		if err := connect(fd, raw(to)); err != nil {
			return err
		}
		peer, err := accept(listener)
		return errors.Join(err, unix.Close(peer))
	}}
}

// sendHook makes the sendto() program run, for datagrams to the server.
func sendHook(server *echo) hook {
	return hook{unix.SOCK_DGRAM, ebpf.AttachCGroupUDP4Sendmsg, func(fd int, to netip.AddrPort) error {
		err := send(fd, []byte("?"), raw(to))
		server.drain()
		return err
	}}
}

func measureConnectHook(b *bench) error {
	listener, err := listenTCP(podPort)
	if err != nil {
		return err
	}
	tcp := tcpHook(listener)
	if err := errors.Join(measureHook(b, tcp, l4.TCP, "hit_lookups_"), measureWeights(b, tcp)); err != nil {
		return err
	}
	// The same program with less kernel code between its runs, so that its own code stays in the
	// caches.
	warm := hook{unix.SOCK_DGRAM, tcp.at, func(fd int, to netip.AddrPort) error { return connect(fd, raw(to)) }}
	err = measureHook(b, warm, l4.UDP, "udp_connect_hit_lookups_")
	return errors.Join(err, unix.Close(listener))
}

func measureSendHook(b *bench) error {
	server, err := newEcho()
	if err != nil {
		return err
	}
	err = measureHook(b, sendHook(server), l4.UDP, "udp_hit_lookups_")
	return errors.Join(err, unix.Close(server.fd))
}

// measureHook records the metric for each pattern in lookups, and the run times that it is computed
// from in ns.
func measureHook(b *bench, h hook, proto l4.Proto, metric string) error {
	w, done, err := b.loaded(proto)
	if err != nil {
		return err
	}
	detach, err := b.alongside(h.at)
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
	return errors.Join(detach(), done())
}

func (b *bench) setHook(metric string, run, release map[string][]float64) error {
	var errs []error
	for side, name := range map[string]string{"hit": metric, "floor": floorPrefix + metric, "miss": strings.Replace(metric, "hit_", "miss_", 1)} {
		lookups, err := stats.Lookups(run[side], run["lookup"], run["empty"])
		if err != nil {
			return err
		}
		errs = append(errs, b.setRounds(name, lookups))
	}
	for side := range run {
		errs = append(errs, b.setRounds(metric+"_"+side+"_ns", run[side]), b.setRounds(metric+"_release_"+side+"_ns", release[side]))
	}
	return errors.Join(errs...)
}
