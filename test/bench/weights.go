package main

import (
	"errors"
	"net/netip"

	"github.com/cilium/ebpf"

	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/bench/stats"
)

// measureWeights measures what weights add to a hit. Every other frontend of one world has them: half
// of its backends have nine times the weight of the others. So both kinds are in the same maps, and
// take their turns in the same rounds.
func measureWeights(b *bench, h hook) error {
	lb, done, err := b.balancer("strait", b.served, b.size.maps)
	if err != nil {
		return err
	}
	all := newWorld(l4.TCP, b.size.frontends, b.size.backends)
	equal, weighted := &world{random: all.random}, &world{random: all.random}
	for i, f := range all.frontends {
		if i%2 == 0 {
			equal.frontends = append(equal.frontends, f)
			continue
		}
		for n := range f.Backends {
			f.Backends[n].Weight = []uint32{1, 9}[n%2]
		}
		weighted.frontends = append(weighted.frontends, f)
	}
	err = errors.Join(problem.Strict(lb.Reconcile(all.frontends, true)), lb.SetOptOut([]string{b.optedOut}))
	if err != nil {
		return errors.Join(err, done())
	}
	unlook, err := b.lookupProgram(h.at)
	if err != nil {
		return errors.Join(err, done())
	}
	for _, p := range []pattern{hot, random} {
		err = errors.Join(err, b.weightsOf(h, p, equal, weighted))
	}
	return errors.Join(err, unlook(), done())
}

// weightsOf records the difference between the two kinds of frontends for one pattern.
func (b *bench) weightsOf(h hook, p pattern, equal, weighted *world) error {
	programs := map[string]*ebpf.Program{}
	for _, cgroup := range []string{b.empty, b.lookup, b.served} {
		for _, at := range []ebpf.AttachType{h.at, ebpf.AttachCgroupInetSockRelease} {
			program, err := onlyProgram(cgroup, at)
			if err != nil {
				return err
			}
			defer program.Close()
			programs[cgroup+at.String()] = program
		}
	}
	side := func(name, cgroup string, dial func() netip.AddrPort) hookSide {
		return hookSide{name, programs[cgroup+h.at.String()], programs[cgroup+ebpf.AttachCgroupInetSockRelease.String()], cgroup, dial}
	}
	elsewhere := func() netip.AddrPort { return p.fixed(equal) }
	// Whichever came right after the other would find the program in the caches. So both come after the
	// same other programs.
	run, _, err := b.hookTimes(h, []hookSide{
		side("lookup", b.lookup, elsewhere),
		side("empty", b.empty, elsewhere),
		side("equal", b.served, func() netip.AddrPort { return p.through(equal) }),
		side("lookup again", b.lookup, elsewhere),
		side("empty again", b.empty, elsewhere),
		side("weighted", b.served, func() netip.AddrPort { return p.through(weighted) }),
	})
	if err != nil {
		return err
	}
	with, err1 := stats.Lookups(run["weighted"], run["lookup"], run["empty"])
	without, err2 := stats.Lookups(run["equal"], run["lookup"], run["empty"])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	more := make([]float64, len(with))
	for i := range more {
		more[i] = with[i] - without[i]
	}
	return errors.Join(
		b.setRounds("weights_more_lookups_"+p.name, more),
		b.setRounds("weights_hit_ratio_"+p.name, stats.Ratios(run["weighted"], run["equal"])),
	)
}
