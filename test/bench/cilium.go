package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/bench/cilium"
	"strait.io/strait/test/bench/kubeproxy"
	"strait.io/strait/test/bench/stats"
)

// The metrics of this phase are ciliumPrefix, the side, and what was measured. Cilium as Helm
// configures it has no word for its side.
const (
	ciliumMetric = "cilium"
	ciliumPrefix = ciliumMetric + "_"
)

// ciliumMissingEnv tells the inner process why Cilium's objects cannot be had. It is empty if they
// can.
const ciliumMissingEnv = "STRAIT_BENCH_CILIUM_MISSING"

// buildCilium fetches and compiles Cilium's programs into the scratch directory, if the phase is
// wanted. It returns what this machine lacks for that. The inner process could not do it: it has no
// network.
func buildCilium(ctx context.Context, o options, dir string) (missing string, err error) {
	if !o.wants(phaseCilium) {
		return "", nil
	}
	start := time.Now()
	_, err = cilium.Build(ctx, dir)
	if lacks := (*cilium.MissingError)(nil); errors.As(err, &lacks) && ctx.Err() == nil {
		return lacks.Error(), nil
	}
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "bench: %-12s %5.1f s\n", "build cilium", time.Since(start).Seconds())
	return "", nil
}

// measureCilium compares the socket load balancer of Cilium itself with strait, with the smallest
// program that balances, with kube-proxy's rules, and with a direct connection.
func measureCilium(b *bench) error {
	if why := os.Getenv(ciliumMissingEnv); why != "" {
		b.skip(ciliumMetric, errors.New(why))
		return nil
	}
	for _, part := range []struct {
		name string
		run  func(*bench) error
	}{
		{"connect", measureCiliumConnect}, {"udp", measureCiliumUDP}, {"hooks", measureCiliumHooks},
		{"torn", measureCiliumTorn}, {"churn", measureCiliumChurn},
	} {
		if err := part.run(b); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// ciliumOn opens Cilium's balancer on a cgroup, with maps that have room for twice what is loaded.
func (b *bench) ciliumOn(cgroup, object string, load []datapath.Frontend, preallocate bool) (*cilium.LB, error) {
	backends := 0
	for _, f := range load {
		backends += len(f.Backends)
	}
	lb, err := cilium.Open(cilium.Config{
		Object: object, Cgroup: cgroup, Preallocate: preallocate,
		Slots: uint32(2 * (len(load) + backends)), Backends: uint32(2 * backends),
	})
	if err != nil {
		return nil, err
	}
	if err := lb.Update(load); err != nil {
		return nil, errors.Join(err, lb.Close())
	}
	return lb, nil
}

// bothCiliums opens it twice with a whole world: as Helm configures it, and without tracing. The
// returned function closes both.
func (b *bench) bothCiliums(w *world) (func() error, error) {
	objects := cilium.In(b.dir)
	traced, err := b.ciliumOn(b.cilium, objects.Traced, w.frontends, false)
	if err != nil {
		return nil, err
	}
	untraced, err := b.ciliumOn(b.untraced, objects.Untraced, w.frontends, false)
	if err != nil {
		return nil, errors.Join(err, traced.Close())
	}
	return func() error { return errors.Join(untraced.Close(), traced.Close()) }, nil
}

// besides loads one world into strait, both of Cilium's configurations, the smallest program at a
// hook, and kube-proxy's rules in their namespace. The returned function undoes it.
func (b *bench) besides(proto l4.Proto, at ebpf.AttachType) (*world, func() error, error) {
	w, done, err := b.loaded(proto)
	if err != nil {
		return nil, nil, err
	}
	unload, err := b.bothCiliums(w)
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	unfloor, err := b.floorProgram(at)
	if err != nil {
		return nil, nil, errors.Join(err, unload(), done())
	}
	if _, err := b.loadRules(kubeproxy.Maps, w); err != nil {
		return nil, nil, errors.Join(err, unfloor(), unload(), done())
	}
	unrule := func() error {
		return b.inside(b.proxied, func() error { return nft("delete", "table", "ip", "kube-proxy") })
	}
	return w, func() error { return errors.Join(unrule(), unfloor(), unload(), done()) }, nil
}

// ciliumSides are the sides of connections, by the names in ciliumSideMetrics. Sockets of nft are
// served by the listener behind, all others by plain.
func (b *bench) ciliumSides(w *world, p pattern, plain, behind int) []side {
	through := func() netip.AddrPort { return p.through(w) }
	direct := func() netip.AddrPort { return p.direct(w) }
	return []side{
		b.bareSide("direct", plain, direct),
		b.servedSide("strait", plain, through),
		b.servedSide("strait miss", plain, direct),
		{name: "cilium", open: b.madeIn(b.cilium), dial: through, listener: plain},
		{name: "cilium miss", open: b.madeIn(b.cilium), dial: direct, listener: plain},
		{name: "untraced", open: b.madeIn(b.untraced), dial: through, listener: plain},
		{name: "nft", open: func(n, kind int) (fds []int, err error) {
			err = b.inside(b.proxied, func() error { fds, err = b.madeIn(b.unserved)(n, kind); return err })
			return fds, err
		}, dial: through, listener: behind},
		b.floorSide(plain, through),
	}
}

// ciliumSideMetrics begin the metrics of each side, and end what is measured.
var ciliumSideMetrics = map[string]struct{ prefix, what string }{
	"strait": {"strait_", ""}, "strait miss": {"strait_", "_miss"}, "cilium": {"", ""}, "cilium miss": {"", "_miss"},
	"untraced": {"untraced_", ""}, "nft": {"nft_", ""}, "floor": {"floor_", ""},
}

// setCiliumRatios records the ratio of each side to the direct one.
func (b *bench) setCiliumRatios(what string, p pattern, medians map[string][]float64) error {
	ratios := map[string]string{}
	for name := range medians {
		if m, ok := ciliumSideMetrics[name]; ok {
			ratios[ciliumPrefix+m.prefix+what+m.what+"_ratio"+p.suffix()] = name
		}
	}
	return errors.Join(b.setRatios(medians, "direct", ratios),
		b.setRounds(ciliumPrefix+what+"_direct_ns"+p.suffix(), medians["direct"]))
}

func measureCiliumConnect(b *bench) error {
	w, done, err := b.besides(l4.TCP, ebpf.AttachCGroupInet4Connect)
	if err != nil {
		return err
	}
	plain, err := listenTCP(podPort)
	if err != nil {
		return err
	}
	var behind int
	if err := b.inside(b.proxied, func() error { behind, err = listenTCP(podPort); return err }); err != nil {
		return err
	}
	for _, p := range []pattern{hot, random} {
		medians, err := turns(b.size.nftRounds, b.size.samples, unix.SOCK_STREAM, b.ciliumSides(w, p, plain, behind), timeConnect)
		if err != nil {
			return err
		}
		if err := b.setCiliumRatios("connect", p, medians); err != nil {
			return err
		}
	}
	return errors.Join(unix.Close(plain), unix.Close(behind), done())
}

func measureCiliumUDP(b *bench) error {
	w, done, err := b.besides(l4.UDP, ebpf.AttachCGroupUDP4Sendmsg)
	if err != nil {
		return err
	}
	plain, err := newEcho()
	if err != nil {
		return err
	}
	var behind *echo
	if err := b.inside(b.proxied, func() error { behind, err = newEcho(); return err }); err != nil {
		return err
	}
	for _, p := range []pattern{hot, random} {
		for what, sample := range map[string]func(*echo, *side, int) (time.Duration, error){
			"udp_connected": (*echo).connected, "udp_unconnected": (*echo).fresh, "udp_unconnected_used": (*echo).used,
		} {
			sides := b.ciliumSides(w, p, 0, 0)
			if what != "udp_unconnected" { // the floor's program is on the hook of sendto() alone
				sides = sides[:len(sides)-1]
			}
			medians, err := turns(b.size.nftRounds, b.size.samples, unix.SOCK_DGRAM, sides, func(s *side, fd int) (time.Duration, error) {
				if s.name == "nft" {
					return sample(behind, s, fd)
				}
				return sample(plain, s, fd)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if err := b.setCiliumRatios(what, p, medians); err != nil {
				return err
			}
		}
	}
	return errors.Join(unix.Close(plain.fd), unix.Close(behind.fd), done())
}

func measureCiliumHooks(b *bench) error {
	stop, err := b.countHooks()
	if err != nil {
		return err
	}
	listener, err := listenTCP(podPort)
	if err != nil {
		return err
	}
	server, err := newEcho()
	if err != nil {
		return err
	}
	return errors.Join(
		b.measureCiliumHook(tcpHook(listener), l4.TCP, ""), b.measureCiliumHook(sendHook(server), l4.UDP, "udp_"),
		unix.Close(server.fd), unix.Close(listener), stop(),
	)
}

// measureCiliumHook records what hits and misses cost at a hook, in lookups and ns, and what the
// hook on the last close() costs after a hit, in ns.
func (b *bench) measureCiliumHook(h hook, proto l4.Proto, kind string) error {
	w, done, err := b.loaded(proto)
	if err != nil {
		return err
	}
	detach, err := b.alongside(h.at)
	if err != nil {
		return err
	}
	unload, err := b.bothCiliums(w)
	if err != nil {
		return err
	}
	for _, p := range []pattern{hot, random} {
		sides, err := b.hookSides(h, w, p)
		if err != nil {
			return err
		}
		for _, s := range []hookSide{
			{name: "cilium hit", cgroup: b.cilium, dial: func() netip.AddrPort { return p.through(w) }},
			{name: "cilium miss", cgroup: b.cilium, dial: func() netip.AddrPort { return p.fixed(w) }},
			{name: "untraced hit", cgroup: b.untraced, dial: func() netip.AddrPort { return p.through(w) }},
		} {
			var err1, err2 error
			s.program, err1 = onlyProgram(s.cgroup, h.at)
			s.release, err2 = onlyProgram(s.cgroup, ebpf.AttachCgroupInetSockRelease)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			sides = append(sides, s)
		}
		run, release, err := b.hookTimes(h, sides)
		if err != nil {
			return err
		}
		if err := b.setCiliumHook(kind, p, run, release); err != nil {
			return err
		}
	}
	return errors.Join(unload(), detach(), done())
}

func (b *bench) setCiliumHook(kind string, p pattern, run, release map[string][]float64) error {
	var errs []error
	for name, m := range map[string]struct{ prefix, what string }{
		"hit": {"strait_", "hit"}, "miss": {"strait_", "miss"}, "floor": {"floor_", "hit"},
		"cilium hit": {"", "hit"}, "cilium miss": {"", "miss"}, "untraced hit": {"untraced_", "hit"},
	} {
		lookups, err := stats.Lookups(run[name], run["lookup"], run["empty"])
		if err != nil {
			return err
		}
		metric := ciliumPrefix + m.prefix + kind + m.what
		errs = append(errs, b.setRounds(metric+"_lookups_"+p.name, lookups), b.setRounds(metric+"_ns_"+p.name, run[name]),
			b.setRounds(metric+"_release_ns_"+p.name, release[name]))
	}
	return errors.Join(append(errs, b.setRounds(ciliumPrefix+kind+"lookup_ns_"+p.name, run["lookup"]),
		b.setRounds(ciliumPrefix+kind+"empty_ns_"+p.name, run["empty"]),
		b.setRounds(ciliumPrefix+kind+"empty_release_ns_"+p.name, release["empty"]))...)
}

func measureCiliumTorn(b *bench) error {
	return b.assert("asserted_cilium", []tornSide{
		{"strait", true, tornStrait, reportTornPeer(ciliumPrefix + "strait_")},
		{"cilium", true, tornCilium(false), reportTornPeer(ciliumPrefix)},
		{"preallocated", true, tornCilium(true), reportTornPeer(ciliumPrefix + "preallocated_")},
	})
}

// measureCiliumChurn flips the same frontends for strait, for Cilium with backends that leave at
// once, and for Cilium with backends that are terminating first.
func measureCiliumChurn(b *bench) error {
	fronts := func() []*churned {
		return []*churned{{number: 0, dialers: []dialer{overIPv4, overMapped}}, {number: 1, dialers: []dialer{overIPv4, overMapped}}}
	}
	lb, done, err := b.balancer("churn-cilium", b.served, socklb.Config{MaxFrontends: 64, MaxBackends: 4096, MaxSockets: 1024})
	if err != nil {
		return err
	}
	err = b.measureFlips(ciliumPrefix+"strait_", b.served, func(want []datapath.Frontend) error {
		return problem.Strict(lb.Reconcile(want, true))
	}, fronts())
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	for prefix, update := range map[string]func(*cilium.LB, []datapath.Frontend) error{
		"": (*cilium.LB).Update, "graceful_": (*cilium.LB).UpdateGracefully,
	} {
		theirs, err := b.ciliumOn(b.cilium, cilium.In(b.dir).Traced, tornWorld()[0], false)
		if err != nil {
			return err
		}
		err = b.measureFlips(ciliumPrefix+prefix, b.cilium, func(want []datapath.Frontend) error { return update(theirs, want) }, fronts())
		if err := errors.Join(err, theirs.Close()); err != nil {
			return err
		}
	}
	return nil
}
