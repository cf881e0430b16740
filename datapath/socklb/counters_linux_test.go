package socklb

import (
	"errors"
	"math"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// counted is what the maps counted of one frontend.
type counted struct {
	connects, refused uint64
	backends          map[netip.AddrPort]uint64
}

func countsOf(t testing.TB, l *LB, a l4.Addr) counted {
	t.Helper()
	bs, ss, err := counterRows(l)
	if err != nil {
		t.Fatal(err)
	}
	c := counted{backends: map[netip.AddrPort]uint64{}}
	for _, s := range ss {
		if s.Addr == a {
			c.connects, c.refused = s.Connects, s.Refused
		}
	}
	for _, b := range bs {
		if b.Frontend == a {
			c.backends[b.Backend] = b.Connects
		}
	}
	return c
}

func (c counted) is(connects, refused uint64, backends map[netip.AddrPort]uint64) bool {
	same := c.connects == connects && c.refused == refused && len(c.backends) == len(backends)
	for b, n := range backends {
		same = same && c.backends[b] == n
	}
	return same
}

// TestCounters: a backend's counter stays its own through flips and restarts; one that leaves and comes
// back begins at 0; refusals are counted, and the frontend's outlive its backends.
func TestCounters(t *testing.T) {
	if !inside(t) {
		return
	}
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { testCounters(t, f) })
	}
}

func testCounters(t *testing.T, f family) {
	cfg := config(t)
	cfg.MaxBackends, cfg.MaxFrontends = 4, 2 // so that numbers are soon used again
	l := opened(t, cfg)
	vip := l4.New(f.vip, 80, l4.UDP)
	to := netip.AddrPortFrom(f.vip, 80)
	a, b := netip.AddrPortFrom(f.pod, 9001), netip.AddrPortFrom(f.pod, 9002)
	set := func(pods ...netip.AddrPort) {
		t.Helper()
		w := datapath.Frontend{Addr: vip}
		for _, p := range pods {
			w.Backends = append(w.Backends, one(p)...)
		}
		reconcile(t, l, w)
	}
	connect := func(times int) {
		t.Helper()
		for range times {
			c := newClient(t, f, unix.SOCK_DGRAM)
			if err := c.connect(to); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
				t.Fatal(err)
			}
			c.close()
		}
	}
	check := func(when string, connects, refused uint64, want map[netip.AddrPort]uint64) {
		t.Helper()
		if got := countsOf(t, l, vip); !got.is(connects, refused, want) {
			t.Errorf("%s: counted %+v, want %d connects, %d refused, %v", when, got, connects, refused, want)
		}
	}
	set(a)
	connect(10)
	check("one backend", 10, 0, map[netip.AddrPort]uint64{a: 10})
	set(b, a)
	check("joined by another", 10, 0, map[netip.AddrPort]uint64{a: 10, b: 0})
	set(b)
	connect(5)
	check("first left", 15, 0, map[netip.AddrPort]uint64{b: 5})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	l = next
	check("restart", 15, 0, map[netip.AddrPort]uint64{b: 5})
	set(a, b)
	check("first came back", 15, 0, map[netip.AddrPort]uint64{a: 0, b: 5})
	set()
	connect(3)
	c := newClient(t, f, unix.SOCK_DGRAM)
	defer c.close()
	if err := c.send(to); err == nil {
		t.Error("sendto to no backend")
	}
	check("none", 15, 4, nil)
	set(a)
	for range 4 { // an unconnected socket chooses once
		if err := c.send(to); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err)
		}
	}
	check("sendto", 16, 4, map[netip.AddrPort]uint64{a: 1})
	reconcile(t, l)
	other := datapath.Frontend{Addr: l4.New(f.vip, 81, l4.UDP), Backends: one(a)}
	reconcile(t, l, other, datapath.Frontend{Addr: l4.New(f.vip, 82, l4.UDP), Backends: one(b)})
	if got := countsOf(t, l, other.Addr); !got.is(0, 0, map[netip.AddrPort]uint64{a: 0}) {
		t.Errorf("another frontend in the same place begins with %+v", got)
	}
}

// TestWeightsExact: 100,000 connections fall on backends by weight, to within 1 % of all, by what the maps
// counted; and the frontend's count is the sum.
func TestWeightsExact(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxSockets = 0
	l := opened(t, cfg)
	f := families[0]
	vip := l4.New(f.vip, 80, l4.UDP)
	bs := backends("127.0.0.2:9001*1", "127.0.0.3:9001*2", "127.0.0.4:9001*7", "127.0.0.5:9001*1", "127.0.0.6:9001*9")
	reconcile(t, l, datapath.Frontend{Addr: vip, Backends: bs})
	const n = 100_000
	c := newClient(t, f, unix.SOCK_DGRAM)
	defer c.close()
	for range n {
		if err := c.connect(netip.AddrPortFrom(vip.IP, vip.Port)); err != nil {
			t.Fatal(err)
		}
	}
	got, total := countsOf(t, l, vip), uint32(0)
	for _, b := range bs {
		total += b.Weight
	}
	sum := uint64(0)
	for _, b := range bs {
		hits := got.backends[b.AddrPort()]
		sum += hits
		share, want := float64(hits)/n, float64(b.Weight)/float64(total)
		t.Logf("weight %d: %.4f, want %.4f", b.Weight, share, want)
		if math.Abs(share-want) > 0.01 {
			t.Errorf("weight %d of %d got %.4f of %d", b.Weight, total, share, n)
		}
	}
	if got.connects != n || sum != n {
		t.Errorf("%d connects, %d of backends; want %d", got.connects, sum, n)
	}
}
