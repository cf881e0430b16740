package socklb

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// TestRefusesUnserved: a port without a frontend is refused at an address that is strait's, and left alone elsewhere,
// even next to a frontend.
func TestRefusesUnserved(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	l := opened(t, cfg)
	t.Cleanup(func() { l.Close() }) // the last one that is opened below
	elsewhere, sub := subtree(t, "pod"), l4.New
	var fronts []datapath.Frontend
	for _, f := range families[:2] {
		for _, proto := range []l4.Proto{l4.TCP, l4.UDP} {
			fronts = append(fronts, datapath.Frontend{Addr: sub(f.vip, 80, proto), Backends: one(netip.AddrPortFrom(f.pod, 9))})
		}
	}
	reconcile(t, l, fronts...)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			check := func(when string, at netip.Addr, refused bool) {
				t.Helper()
				for _, port := range []uint16{81, 1} {
					if got := refuses(t, l, f, netip.AddrPortFrom(at, port)); got != refused {
						t.Errorf("%s: %s refused %v, want %v", when, netip.AddrPortFrom(at, port), got, refused)
					}
				}
			}
			next := f.vip.Next()
			own := func(o datapath.Own, prune bool) {
				t.Helper()
				if err := problem.Strict(l.SetOwn(o, prune)); err != nil {
					t.Fatal(err)
				}
			}
			check("nothing is strait's but ports", f.vip, false)
			own(datapath.Own{Addrs: []netip.Addr{f.vip}}, true)
			check("the address is", f.vip, true)
			check("the address is", next, false)
			in(t, elsewhere, func() { check("the address is, before the opt-out", f.vip, true) })
			if err := l.SetOptOut([]string{elsewhere}); err != nil {
				t.Fatal(err)
			}
			in(t, elsewhere, func() { check("opted out", f.vip, false) })
			if err := l.SetOptOut(nil); err != nil {
				t.Fatal(err)
			}
			own(datapath.Own{}, false)
			check("not yet removed", f.vip, true)
			reconcile(t, l)
			check("without frontends", f.vip, true)
			own(datapath.Own{}, true)
			check("removed", f.vip, false)
			bits := 24
			if f.vip.Is6() {
				bits = 112
			}
			r, _ := f.vip.Prefix(bits)
			own(datapath.Own{Prefixes: []netip.Prefix{r}}, true)
			check("in the range", f.vip, true)
			check("in the range", next, true)
			check("outside the range", outside(r), false)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			var err error
			if l, err = Open(cfg); err != nil {
				t.Fatal(err)
			}
			check("in the range, opened again", next, true)
			if got := l.table.own.Prefixes; !slices.Equal(got, []netip.Prefix{r}) {
				t.Errorf("opened again: ranges %v, want %v", got, r)
			}
			own(datapath.Own{}, true)
			check("no range", next, false)
			reconcile(t, l, fronts...)
		})
	}
}

// outside returns the first address after a prefix.
func outside(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr()
	for p.Contains(a) {
		a = a.Next()
	}
	return a
}

// refuses reports whether every way to dial an address is refused, and fails if they differ. Before Linux 6.1 a datagram
// fails with EINVAL, and connected UDP when it is first used.
func refuses(t testing.TB, l *LB, f family, at netip.AddrPort) bool {
	t.Helper()
	stream, dgram, loose := newClient(t, f, unix.SOCK_STREAM), newClient(t, f, unix.SOCK_DGRAM), newClient(t, f, unix.SOCK_DGRAM)
	defer stream.close()
	defer dgram.close()
	defer loose.close()
	n := 0
	connected := dgram.connect(at)
	if connected == nil && !has(l.features, featureSetRetval) {
		_ = dgram.write()
		connected = dgram.write()
	}
	for _, err := range []error{stream.connect(at), connected, loose.send(at)} {
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EINVAL) && !has(l.features, featureSetRetval) {
			n++
		} else if err != nil && !errors.Is(err, unix.ENETUNREACH) {
			t.Error(err)
		}
	}
	if n != 0 && n != 3 {
		t.Errorf("%s: %d of 3 ways are refused", at, n)
	}
	return n > 0
}
