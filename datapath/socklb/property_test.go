package socklb

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// machine is a load balancer that lets a test see and change what is between its table and its maps.
type machine interface {
	balancer
	// decided is the table; its kernel may be replaced until restart.
	decided() *table
	// read decodes the maps, set reads the raw word of one.
	read() ([]installed, error)
	set(index uint32) uint64
	sizes() Config
	// restart forgets all but the maps and goes on from them, as a daemon that was killed.
	restart() error
	// look compares with what is in force what only this kind of machine shows.
	look(t *rapid.T, force map[l4.Addr]installed)
}

// property is a machine under test and what it should hold.
type property struct {
	m machine
	w *watcher
	// force is what the maps hold, by frontend.
	force map[l4.Addr]installed
}

// checkProperties: any sequence of wanted states, with steps that fail, maps that fill up, restarts, and deaths
// between any two steps. No step is one that a running program could see as wrong. inspect.After each wanted state
// every frontend is as wanted, or as it was; errors name exactly the others, each with a cause that is
// true. Nothing is lost: each slot, index and counter is in one frontend's hand, or free.
func checkProperties(t *testing.T, fresh func(*rapid.T) machine) {
	rapid.Check(t, func(t *rapid.T) {
		p := &property{m: fresh(t)}
		p.begin(t)
		t.Repeat(map[string]func(*rapid.T){
			"reconcile": func(t *rapid.T) { p.reconcile(t, drawFaults(t)) },
			// Many are without faults, so that maps fill up.
			"reconcile in peace": func(t *rapid.T) { p.reconcile(t, faults{}) },
			"restart": func(t *rapid.T) {
				switch rapid.IntRange(0, 3).Draw(t, "restart") {
				case 0:
					p.restart(t)
				case 1:
					p.reconcile(t, faults{Death: rapid.IntRange(1, 40).Draw(t, "death at step")})
				}
			},
			"": p.check,
		})
	})
}

// begin looks at a machine that was just made or started.
func (p *property) begin(t *rapid.T) {
	have, err := p.m.read()
	if err != nil {
		t.Fatal(err)
	}
	p.force = map[l4.Addr]installed{}
	for _, h := range have {
		p.force[h.frontend.Addr] = h
	}
	table := p.m.decided()
	p.w = watch(table.kernel, have, t.Fatalf)
	table.kernel = p.w
}

func (p *property) restart(t *rapid.T) {
	before := p.force
	if err := p.m.restart(); err != nil {
		t.Fatalf("restart: %v", err)
	}
	p.begin(t)
	for a := range before {
		if !same(before, p.force, a) {
			t.Fatalf("%s was changed by a restart from %v to %v", a, before[a], p.force[a])
		}
	}
	if len(p.force) != len(before) {
		t.Fatalf("a restart brought frontends: %v, before %v", p.force, before)
	}
}

// The addresses that wanted states are drawn from: few, so that repeats happen and maps fill up.
var (
	drawnVIPs = []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:96::1")}
	drawnPods = []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.IPv6Loopback()}
)

const drawnPort, drawnPorts = 9001, 6

// drawWanted draws a frontend: mostly valid, its backends in any order and with repeats.
func drawWanted(t *rapid.T) datapath.Frontend {
	family := rapid.IntRange(0, 1).Draw(t, "family")
	f := datapath.Frontend{
		Addr:            l4.New(drawnVIPs[family], rapid.Uint16Range(80, 81).Draw(t, "port"), rapid.SampledFrom([]l4.Proto{l4.TCP, l4.UDP}).Draw(t, "proto")),
		Service:         rapid.SampledFrom([]string{"", "default/web"}).Draw(t, "service"),
		AffinitySeconds: rapid.SampledFrom([]uint32{0, 0, 1, 10800}).Draw(t, "affinity"),
	}
	for range rapid.IntRange(0, 8).Draw(t, "backends") {
		f.Backends = append(f.Backends, datapath.Backend{
			IP: drawnPods[family], Port: drawnPort + rapid.Uint16Range(0, drawnPorts-1).Draw(t, "pod"),
			Weight: rapid.SampledFrom([]uint32{1, 2, 3, datapath.MaxWeight}).Draw(t, "weight"),
		})
	}
	if n := len(f.Backends); n > 0 {
		last := &f.Backends[n-1]
		switch rapid.IntRange(0, 30).Draw(t, "mistake") {
		case 27:
			last.Weight = 0
		case 28:
			last.Port = 0
		case 29:
			last.IP = drawnPods[1-family]
		case 30:
			f.Addr.Proto = l4.SCTP
		}
	}
	return f
}

// drawWant draws a state: some of what is in force, changed or not, and others. Of two with one address the last counts.
func (p *property) drawWant(t *rapid.T) (want []datapath.Frontend) {
	for _, a := range sortedKeys(p.force) {
		f := p.force[a].frontend
		switch rapid.IntRange(0, 3).Draw(t, "keep") {
		case 0:
			continue
		case 1:
			f.AffinitySeconds = 7
		}
		want = append(want, f)
	}
	return append(want, rapid.SliceOfN(rapid.Custom(drawWanted), 0, 5).Draw(t, "new")...)
}

func drawFaults(t *rapid.T) (f faults) {
	for _, vip := range drawnVIPs {
		for _, proto := range []l4.Proto{l4.TCP, l4.UDP} {
			if rapid.IntRange(0, 3).Draw(t, "faulty") == 0 {
				f.Addrs = append(f.Addrs, l4.New(vip, 80, proto))
			}
		}
	}
	f.Full = rapid.Bool().Draw(t, "as if full")
	f.Zero = rapid.IntRange(0, 3).Draw(t, "every n-th zeroing fails")
	f.Grace = rapid.IntRange(0, 3).Draw(t, "every n-th grace period fails")
	return f
}

func (p *property) reconcile(t *rapid.T, f faults) {
	want, prune := p.drawWant(t), rapid.Bool().Draw(t, "prune")
	p.w.fail = t.Fatalf
	p.w.inject(f)
	died, problems, err := p.survive(want, prune)
	p.w.inject(faults{})
	if died {
		if err := p.m.restart(); err != nil {
			t.Fatalf("restart after death at step %d: %v", f.Death, err)
		}
	}
	before := p.force
	p.begin(t)
	if died {
		checkDeath(t, before, p.force, want, prune)
		return
	}
	checkOutcome(t, outcome{before, p.force, want, prune, f, p.m.sizes()}, problems, err)
}

// survive reports a death instead of dying.
func (p *property) survive(want []datapath.Frontend, prune bool) (died bool, problems []problem.Problem, err error) {
	defer func() {
		if r := recover(); r == (death{}) {
			died = true
		} else if r != nil {
			panic(r)
		}
	}()
	problems, err = p.m.Reconcile(want, prune)
	return false, problems, err
}

// check compares the table's belief, and all that a machine shows, with what is in force.
func (p *property) check(t *rapid.T) {
	table := p.m.decided()
	if len(table.installed) != len(p.force) {
		t.Fatalf("the table believes in %d frontends, the maps hold %d", len(table.installed), len(p.force))
	}
	fs := []datapath.Frontend{}
	for _, a := range sortedKeys(p.force) {
		h, believed := p.force[a], table.installed[a]
		if believed == nil || !believed.frontend.Equal(h.frontend) || believed.index != h.index || believed.block != h.block ||
			!slices.Equal(believed.numbers, h.numbers) {
			t.Fatalf("%s: the table believes %v, the maps hold %v", a, believed, h)
		}
		fs = append(fs, h.frontend)
	}
	got, err := p.m.Frontends()
	if err != nil || !slices.EqualFunc(got, fs, datapath.Frontend.Equal) {
		t.Fatalf("Frontends: %v, %v; in force is %v", got, err, fs)
	}
	if d, err := table.audit(); err != nil || d.changed(false) != nil {
		t.Fatalf("an audit of what Reconcile left: %v, %v", d.changed(false), err)
	}
	checkOwners(t, p.m, p.force)
	p.m.look(t, p.force)
}

// owners counts in whose hand each of a kind of number is.
type owners map[uint32]string

func (o owners) own(t *rapid.T, kind, owner string, from, to uint32) {
	for n := from; n < to; n++ {
		if was, ok := o[n]; ok {
			t.Fatalf("%s %d is both %s and %s", kind, n, was, owner)
		}
		o[n] = owner
	}
}

// all: every one of size numbers has an owner.
func (o owners) all(t *rapid.T, kind string, size uint32) {
	for n := range size {
		if o[n] == "" {
			t.Fatalf("%s %d of %d is lost: %v", kind, n, size, o)
		}
	}
	if len(o) != int(size) {
		t.Fatalf("%d of %d %s: %v", len(o), size, kind, o)
	}
}

// rest are those of numbers that no frontend has.
func (o owners) rest(t *rapid.T, kind string, n *numberAllocator) {
	for list, who := range map[*[]uint32]string{&n.free: "free", &n.limbo: "in limbo"} {
		for _, i := range *list {
			o.own(t, kind, who, i, i+1)
		}
	}
	o.own(t, kind, "unused", n.next, n.size)
	o.all(t, kind, n.size)
}

// checkOwners: each slot, index and counter is one frontend's, or free, or waits to be; and no set without a
// frontend has slots, unless a program may still read it.
func checkOwners(t *rapid.T, m machine, force map[l4.Addr]installed) {
	table := m.decided()
	slots, indexes, counters := owners{}, owners{}, owners{0: "none"}
	for a, h := range force {
		slots.own(t, "slot", a.String(), h.block.base, h.block.end())
		indexes.own(t, "index", a.String(), h.index, h.index+1)
		for i, n := range h.numbers {
			counters.own(t, "counter", fmt.Sprintf("%s's %s", a, h.frontend.Backends[i].AddrPort()), n, n+1)
		}
	}
	for list, who := range map[*[]extent]string{&table.slots.free: "free", &table.slots.limbo: "in limbo"} {
		for _, e := range *list {
			slots.own(t, "slot", who, e.base, e.end())
		}
	}
	slots.all(t, "slot", m.sizes().MaxBackends)
	indexes.rest(t, "index", table.indexes)
	counters.rest(t, "counter", table.counters)
	for n, who := range indexes {
		if set := m.set(n); set != 0 && (who == "free" || who == "unused") {
			t.Fatalf("set %d is %s and has slots %v", n, who, extentOf(set))
		}
	}
}

func same(before, after map[l4.Addr]installed, a l4.Addr) bool {
	x, was := before[a]
	y, is := after[a]
	return was == is && (!was || x.frontend.Equal(y.frontend))
}

func sortedKeys(m map[l4.Addr]installed) (out []l4.Addr) {
	for a := range m {
		out = append(out, a)
	}
	slices.SortFunc(out, l4.Addr.Compare)
	return out
}
