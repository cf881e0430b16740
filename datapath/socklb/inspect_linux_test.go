package socklb

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// TestReader: each kind of row, read from the pins alone, with the balancer open and closed.
func TestReader(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxSockets = 1 // every second socket overflows
	l := opened(t, cfg)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { testReader(t, l, f) })
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := inspect.OpenReader(cfg.Pins)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if rows, err := r.Services(); err != nil || len(rows) != 2 {
		t.Errorf("services of a closed balancer: %v, %v", rows, err)
	}
	if _, err := inspect.OpenReader(cfg.Pins + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no pins: %v", err)
	}
	if err := os.Mkdir(cfg.Pins+"y", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(cfg.Pins+"y/layout-1", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := inspect.OpenReader(cfg.Pins + "y"); err == nil || !strings.Contains(err.Error(), "have layout-1, this program reads "+layout.Dir(layout.Number)) {
		t.Errorf("pins of another layout: %v", err)
	}
}

func testReader(t *testing.T, l *LB, f family) {
	r, err := inspect.OpenReader(l.Pins())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	noRecords(t, l) // of the family before
	vip, empty := l4.New(f.vip, 80, l4.UDP), l4.New(f.vip, 81, l4.TCP)
	a, b := netip.AddrPortFrom(f.pod, 9001), netip.AddrPortFrom(f.pod, 9002)
	reconcile(t, l, datapath.Frontend{Addr: vip, AffinitySeconds: 60, Backends: []datapath.Backend{
		{IP: a.Addr(), Port: a.Port(), Weight: 3}, {IP: b.Addr(), Port: b.Port(), Weight: 1}}}, datapath.Frontend{Addr: empty})
	c, u := newClient(t, f, unix.SOCK_DGRAM), newClient(t, f, unix.SOCK_DGRAM)
	defer c.close()
	defer u.close()
	to := netip.AddrPortFrom(f.vip, 80)
	if err := errors.Join(c.connect(to), u.send(to)); err != nil {
		t.Fatal(err)
	}
	services, err := r.Services()
	if err != nil || len(services) != 2 {
		t.Fatalf("services %+v, %v", services, err)
	}
	s := services[0]
	if s.Addr != vip || s.Count != 2 || s.AffinitySeconds != 60 || s.Connects != 2 || services[1].Addr != empty || services[1].Count != 0 {
		t.Errorf("services %+v", services)
	}
	bs, err := r.Backends()
	if err != nil || len(bs) != 2 || bs[0].Frontend != vip || bs[0].Backend != a || bs[0].Weight != 3 || bs[1].Backend != b || bs[1].Weight != 1 ||
		bs[0].Connects+bs[1].Connects != 2 {
		t.Errorf("backends %+v, %v", bs, err)
	}
	slots, err := r.Slots()
	if err != nil || len(slots) != 2 || slots[0].Slot != s.Base || slots[0].Backend != a || slots[1].Alias != 0 || slots[1].Threshold>>16 != 1<<15-1 {
		t.Errorf("slots %+v, %v", slots, err)
	}
	affinity, err := r.Affinity()
	var mine []inspect.AffinityRow
	for _, row := range affinity {
		if row.Frontend == vip {
			mine = append(mine, row)
		}
	}
	if err != nil || len(mine) != 1 || mine[0].IdleSeconds > 30 {
		t.Fatalf("affinity %+v, %v", mine, err)
	}
	t.Run("client", func(t *testing.T) {
		cookie, err := unix.GetsockoptUint64(c.fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
		if errors.Is(err, unix.ENOPROTOOPT) {
			t.Skip("no SO_NETNS_COOKIE before Linux 5.14: user space cannot say which client is this namespace")
		}
		if err != nil || mine[0].Client != cookie {
			t.Errorf("affinity %+v of client %d, %v", mine, cookie, err)
		}
	})
	sockets, err := r.Sockets()
	if err != nil || len(sockets) != 2 {
		t.Fatalf("sockets %+v, %v", sockets, err)
	}
	for i, sock := range []*client{c, u} {
		cookie, err := unix.GetsockoptUint64(sock.fd, unix.SOL_SOCKET, unix.SO_COOKIE)
		if err != nil {
			t.Fatal(err)
		}
		want := inspect.SocketRow{Cookie: cookie, Proto: l4.UDP, Frontend: to, Backend: mine[0].Backend, Connected: i == 0, Overflow: i == 1}
		if !slices.Contains(sockets, want) {
			t.Errorf("no %+v in %+v", want, sockets)
		}
	}
}

// TestUsage: every map reports how full it is, and what is retired counts until it is free.
func TestUsage(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxFrontends, cfg.MaxBackends, cfg.MaxSockets = 4, 16, 2
	l := opened(t, cfg)
	check := func(when string, want map[string][2]uint64) {
		t.Helper()
		got := map[string][2]uint64{}
		for _, u := range l.Usage() {
			got[u.Map] = [2]uint64{u.Used, u.Limit}
		}
		for name, w := range want {
			if got[name] != w {
				t.Errorf("%s: %s is %v, want %v", when, name, got[name], w)
			}
		}
		if len(got) != 8 {
			t.Errorf("%s: maps %v", when, got)
		}
	}
	check("empty", map[string][2]uint64{"services": {0, 4}, "sets": {0, 4}, "backends": {0, 16}, inspect.BackendsRun: {0, 16},
		"sockets": {0, 2}, "addresses": {0, 4}, "optouts": {0, DefaultMaxOptOuts}})
	vip := l4.New(families[0].vip, 80, l4.UDP)
	web := datapath.Frontend{Addr: vip, Backends: backends("127.0.0.2:1", "127.0.0.2:2", "127.0.0.2:3"), AffinitySeconds: 9}
	reconcile(t, l, web, datapath.Frontend{Addr: addr("10.96.0.1:81/TCP"), Backends: backends("127.0.0.2:1")})
	for range 3 {
		c := newClient(t, families[0], unix.SOCK_DGRAM)
		defer c.close()
		if err := c.connect(netip.AddrPortFrom(vip.IP, 80)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.SetOptOut([]string{subtree(t, "pod")}); err != nil {
		t.Fatal(err)
	}
	check("used", map[string][2]uint64{"services": {2, 4}, "sets": {2, 4}, "backends": {4, 16}, inspect.BackendsRun: {4, 16},
		"sockets": {2, 2}, "affinities": {1, uint64(l.maps.Affinities.MaxEntries())}, "optouts": {1, DefaultMaxOptOuts}})
	web.Backends = web.Backends[1:]
	reconcile(t, l, web)
	check("retired", map[string][2]uint64{"services": {1, 4}, "sets": {2, 4}, "backends": {6, 16}})
	if err := l.table.settle(); err != nil {
		t.Fatal(err)
	}
	l.publishUsage()
	check("settled, in pieces", map[string][2]uint64{"sets": {1, 4}, "backends": {2, 16}, inspect.BackendsRun: {6, 16}})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if u := l.Usage(); u != nil {
		t.Errorf("closed: %v", u)
	}
}

// TestForeign: programs of others are found wherever they are, with what they are called and when they run;
// ours are not among them, and both work.
func TestForeign(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	parent := cfg.Cgroup
	cfg.Cgroup = subtree(t, "node")
	below := subtree(t, "node/pod")
	attachRaw(t, cfg.Cgroup, unix.BPF_F_ALLOW_MULTI)
	l := opened(t, cfg)
	check := func(want ...datapath.ForeignProgram) {
		t.Helper()
		got, err := inspect.Foreign(l.Pins(), l.Cgroup())
		for i := range got {
			if got[i].ID == 0 {
				t.Errorf("no id: %+v", got[i])
			}
			got[i].ID = 0
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("found %+v, %v; want %+v", got, err, want)
		}
	}
	first := datapath.ForeignProgram{Hook: "connect4", Name: "foreign", Path: cfg.Cgroup, Order: datapath.Top}
	if has(l.features, featureFirst) {
		first.Order = datapath.After
	}
	check(first)
	attachRaw(t, cfg.Cgroup, unix.BPF_F_ALLOW_MULTI)
	attachRaw(t, below, unix.BPF_F_ALLOW_MULTI)
	second, third := first, first
	second.Order = datapath.After
	third.Path, third.Order = below, datapath.Below
	check(first, second, third)
	attachRaw(t, parent, unix.BPF_F_ALLOW_MULTI)
	fourth := second
	fourth.Path = parent
	check(first, second, fourth, third)

	pod := serve(t, l4.TCP, netip.MustParseAddrPort("127.0.0.2:0"))
	vip := l4.New(families[0].vip, 80, l4.TCP)
	reconcile(t, l, datapath.Frontend{Addr: vip, Backends: one(pod)})
	in(t, below, func() {
		if got, err := ask(t, families[0], vip); err != nil || got != pod.String() {
			t.Errorf("among other programs: %q, %v", got, err)
		}
	})
}

// TestInstructions prints how long each program is, so that growth shows in review, and holds it below what
// every supported kernel verifies.
func TestInstructions(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	spec, err := layout.Spec()
	if err != nil {
		t.Fatal(err)
	}
	ids, err := inspect.Programs(l.Pins())
	if err != nil || len(ids) != len(layout.Hooks) {
		t.Fatalf("programs %v, %v", ids, err)
	}
	for id := range ids {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			t.Fatal(err)
		}
		info, err := p.Info()
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		jitted, err := info.JitedSize()
		if err != nil {
			jitted = 0
		}
		steps := "unknown before Linux 5.16"
		if n, ok := info.VerifiedInstructions(); ok {
			steps = fmt.Sprint(n)
			// The limit is a million; an older kernel may need several times as many steps.
			if n > 200_000 {
				t.Errorf("%s: verified in %d steps", info.Name, n)
			}
		}
		t.Logf("%-14s %5d instructions, %6d bytes of machine code, verified in %s steps", info.Name, len(spec.Programs[info.Name].Instructions), jitted, steps)
	}
}
