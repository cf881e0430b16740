package socklb

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// lbMachine is LB as a machine, with sockets that connect through it.
type lbMachine struct {
	*LB
	t   testing.TB
	cfg Config
	// counts is what must have been counted.
	counts map[l4.Addr]counted
	// probes counts connections, by family and kind of socket.
	probes   map[string]int
	restarts int
}

func (m *lbMachine) decided() *table            { return m.table }
func (m *lbMachine) read() ([]installed, error) { return m.kernel.read() }
func (m *lbMachine) set(index uint32) uint64 {
	return atomic.LoadUint64(layout.WordOf(&m.kernel.sets[index]))
}
func (m *lbMachine) sizes() Config { return m.cfg }

func (m *lbMachine) restart() error {
	m.restarts++
	if err := m.Close(); err != nil {
		return err
	}
	l, err := Open(m.cfg)
	if err == nil {
		m.LB = l
	}
	return err
}

// empty is what a check starts from: whatever the one before it left is removed.
func (m *lbMachine) empty(t *rapid.T) machine {
	err := m.restart()
	if err == nil {
		err = problem.Strict(m.Reconcile(nil, true))
	}
	if err != nil {
		t.Fatal(err)
	}
	clear(m.counts)
	return m
}

// TestLBProperties is TestFakeProperties on the kernel's maps, with maps that are soon full. What a reader
// sees is what is in force, and so is what sockets see.
func TestLBProperties(t *testing.T) {
	if !inside(t) {
		return
	}
	// A check restarts often, for which the kernel verifies the programs: on a busy machine it takes many
	// seconds. So there are as many as there is time for.
	steps, patience := "30", 20*time.Second
	if testing.Short() {
		steps, patience = "10", 0
	}
	for name, value := range map[string]string{"rapid.checks": "1", "rapid.steps": steps, "rapid.shrinktime": "1m"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range drawnPods {
		for port := range uint16(drawnPorts) {
			for _, proto := range []l4.Proto{l4.TCP, l4.UDP} {
				serve(t, proto, netip.AddrPortFrom(pod, drawnPort+port))
			}
		}
	}
	for _, size := range []Config{{MaxFrontends: 3, MaxBackends: 12}, {MaxFrontends: 6, MaxBackends: 20}} {
		t.Run(fmt.Sprintf("%d frontends, %d slots", size.MaxFrontends, size.MaxBackends), func(t *testing.T) {
			cfg := config(t)
			cfg.MaxFrontends, cfg.MaxBackends, cfg.MaxSockets = size.MaxFrontends, size.MaxBackends, 64
			m := &lbMachine{t: t, cfg: cfg, counts: map[l4.Addr]counted{}, probes: map[string]int{}}
			var err error
			if m.LB, err = Open(cfg); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := errors.Join(m.Close(), CleanUp(cfg)); err != nil {
					t.Error(err)
				}
			})
			checks := 0
			for start := time.Now(); checks == 0 || checks < 10 && time.Since(start) < patience && !t.Failed(); checks++ {
				checkProperties(t, m.empty)
			}
			t.Logf("%d checks, sockets %v, restarts %d", checks, m.probes, m.restarts)
		})
	}
}

// look: readers and counters show what is in force, and sockets meet it.
func (m *lbMachine) look(t *rapid.T, force map[l4.Addr]installed) {
	m.forget(force)
	for range rapid.IntRange(0, 3).Draw(t, "sockets") {
		f := rapid.SampledFrom(families).Draw(t, "family")
		port := rapid.Uint16Range(80, 81).Draw(t, "port")
		kind := rapid.SampledFrom([]string{"TCP", "UDP", "UDP unconnected"}).Draw(t, "kind")
		m.probe(t, f, kind, port, force)
	}
	m.readers(t, force)
	m.usage(t, force)
}

// forget drops the counts of what is no longer in force: a counter that is given out again starts at 0.
func (m *lbMachine) forget(force map[l4.Addr]installed) {
	maps.DeleteFunc(m.counts, func(a l4.Addr, _ counted) bool { _, there := force[a]; return !there })
	for a, h := range force {
		c := m.counts[a]
		old := c.backends
		c.backends = map[netip.AddrPort]uint64{}
		for _, b := range h.frontend.Backends {
			c.backends[b.AddrPort()] = old[b.AddrPort()]
		}
		m.counts[a] = c
	}
}

// probe makes a fresh socket meet a frontend, or what could be one: one of its backends answers, as the frontend;
// or none does, since there is none.
func (m *lbMachine) probe(t *rapid.T, f family, kind string, port uint16, force map[l4.Addr]installed) {
	proto, of := l4.UDP, unix.SOCK_DGRAM
	if kind == "TCP" {
		proto, of = l4.TCP, unix.SOCK_STREAM
	}
	a, vip := l4.New(f.vip, port, proto), netip.AddrPortFrom(f.vip, port)
	h, there := force[a]
	empty := there && len(h.frontend.Backends) == 0
	if empty && !has(m.features, featureSetRetval) {
		return // refused in another way, and at another time: TestRefuseWithoutRetval
	}
	m.probes[f.name+" "+kind]++
	text, from, err := meet(m.t, f, of, kind == "UDP unconnected", vip)
	c := m.counts[a]
	defer func() { m.counts[a] = c }()
	switch {
	case !there:
		delete(m.counts, a)
		defer delete(m.counts, a)
		if !errors.Is(err, unix.ENETUNREACH) {
			t.Fatalf("%s %s, which is no frontend: %q from %s, %v", f.name, a, text, from, err)
		}
	case empty:
		c.refused++
		if !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatalf("%s %s, which has no backends: %q from %s, %v", f.name, a, text, from, err)
		}
	case err != nil:
		t.Fatalf("%s %s: %v; in force is %v", f.name, a, err, h.frontend)
	default:
		at, err := netip.ParseAddrPort(text)
		isIt := func(b datapath.Backend) bool { return b.AddrPort() == at }
		if err != nil || from != vip || !slices.ContainsFunc(h.frontend.Backends, isIt) {
			t.Fatalf("%s %s: answer %q from %v; in force is %v", f.name, a, text, from, h.frontend)
		}
		c.connects++
		c.backends[at]++
	}
}

// meet asks once and returns who answers, and whom the socket is shown.
func meet(t testing.TB, f family, kind int, unconnected bool, vip netip.AddrPort) (text string, from netip.AddrPort, err error) {
	c := newClient(t, f, kind)
	defer c.close()
	if unconnected {
		if err := c.send(vip); err != nil {
			return "", from, err
		}
		return c.receive()
	}
	if kind == unix.SOCK_STREAM { // closing by reset leaves no TIME_WAIT
		if err := unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
			return "", from, err
		}
	}
	if err := c.connect(vip); err != nil {
		return "", from, err
	}
	if kind == unix.SOCK_DGRAM {
		if err := c.write(); err != nil {
			return "", from, err
		}
	}
	if text, _, err = c.receive(); err != nil {
		return "", from, err
	}
	from, err = c.peer()
	return text, from, err
}

// readers: a reader shows what is in force, where it lies, and what was counted.
func (m *lbMachine) readers(t *rapid.T, force map[l4.Addr]installed) {
	var services []inspect.ServiceRow
	var backends []inspect.BackendRow
	var slots []inspect.SlotRow
	fs := []datapath.Frontend{}
	for _, a := range sortedKeys(force) {
		h, c := force[a], m.counts[a]
		fs = append(fs, h.frontend)
		services = append(services, inspect.ServiceRow{Addr: a, Index: h.index, Base: h.block.base, Count: h.block.count,
			AffinitySeconds: h.frontend.AffinitySeconds, Connects: c.connects, Refused: c.refused})
		for i, s := range slotsOf(h.frontend.Backends, h.numbers) {
			b := h.frontend.Backends[i]
			backends = append(backends, inspect.BackendRow{Frontend: a, Backend: b.AddrPort(), Weight: b.Weight, Connects: c.backends[b.AddrPort()]})
			slots = append(slots, inspect.SlotRow{Slot: h.block.base + uint32(i), Frontend: a, Backend: b.AddrPort(), Threshold: s.Threshold, Alias: s.Alias})
		}
	}
	slices.SortFunc(slots, func(a, b inspect.SlotRow) int { return int(a.Slot) - int(b.Slot) })
	gotServices, err1 := m.reader.Services()
	gotBackends, err2 := m.reader.Backends()
	gotSlots, err3 := m.reader.Slots()
	gotFS, err4 := inspect.Read(m.cfg.Pins)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(gotServices, services) {
		t.Fatalf("services\n%v, want\n%v", gotServices, services)
	}
	if !slices.Equal(gotBackends, backends) {
		t.Fatalf("backends\n%v, want\n%v", gotBackends, backends)
	}
	if !slices.Equal(gotSlots, slots) {
		t.Fatalf("slots\n%v, want\n%v", gotSlots, slots)
	}
	if !slices.EqualFunc(gotFS, fs, datapath.Frontend.Equal) {
		t.Fatalf("Read %v, want %v", gotFS, fs)
	}
}

// usage: what the metrics of pressure show is so.
func (m *lbMachine) usage(t *rapid.T, force map[l4.Addr]installed) {
	slots := uint64(0)
	for _, h := range force {
		slots += uint64(len(h.frontend.Backends))
	}
	for _, e := range m.table.slots.limbo {
		slots += uint64(e.count)
	}
	want := map[string]datapath.MapUsage{
		layout.MapServices: {Map: layout.MapServices, Used: uint64(len(force)), Limit: uint64(m.cfg.MaxFrontends)},
		layout.MapSets:     {Map: layout.MapSets, Used: uint64(len(force) + len(m.table.indexes.limbo)), Limit: uint64(m.cfg.MaxFrontends)},
		layout.MapBackends: {Map: layout.MapBackends, Used: slots, Limit: uint64(m.cfg.MaxBackends)},
		layout.MapSockets:  {Map: layout.MapSockets, Limit: uint64(m.cfg.MaxSockets), Soft: true},
	}
	got := map[string]datapath.MapUsage{}
	for _, u := range m.Usage() {
		got[u.Map] = u
	}
	for name, w := range want {
		if got[name] != w {
			t.Fatalf("usage of %s: %+v, want %+v", name, got[name], w)
		}
	}
}
