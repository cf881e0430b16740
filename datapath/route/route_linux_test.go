package route_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/route"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

const device = "strait0"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// addTUN stands for the tunnel: a TUN that no process reads.
func addTUN(t *testing.T, name string) {
	t.Helper()
	must(t, netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TUN}))
}

func router(t *testing.T) *route.Router {
	t.Helper()
	addTUN(t, device)
	r := route.New(route.Config{Device: device})
	must(t, r.SetUp(device, 1380, netip.MustParsePrefix("10.1.0.1/32")))
	link, err := netlink.LinkByName(device)
	must(t, err)
	must(t, netlink.AddrAdd(link, mustAddr("fd00:1::1/128", unix.IFA_F_NODAD)))
	return r
}

func mustAddr(s string, flags int) *netlink.Addr {
	a, err := netlink.ParseAddr(s)
	if err != nil {
		panic(err)
	}
	a.Flags = flags
	return a
}

func tunnelTo(dst, src string) datapath.Route {
	return datapath.Route{Dst: netip.MustParsePrefix(dst), Src: netip.MustParseAddr(src)}
}

func unreachable(dst string) datapath.Route {
	return datapath.Route{Dst: netip.MustParsePrefix(dst), Unreachable: true}
}

func holds(t *testing.T, r *route.Router, want ...datapath.Route) {
	t.Helper()
	got, err := r.Routes()
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("the kernel holds\n%v\nwant\n%v", got, want)
	}
}

func TestReconcile(t *testing.T) {
	testutil.NetNS(t)
	r := router(t)
	v4, v6 := tunnelTo("10.2.0.0/16", "10.1.0.1"), tunnelTo("fd00:2::/64", "fd00:1::1")
	vip4, vip6 := unreachable("10.99.0.0/16"), unreachable("fd00:99::/64")
	noSrc := datapath.Route{Dst: netip.MustParsePrefix("10.3.0.0/16")}

	must(t, problem.Strict(r.Reconcile([]datapath.Route{vip4, v4, v6, vip6, noSrc}, true)))
	holds(t, r, v4, noSrc, vip4, v6, vip6)

	// A route that becomes unreachable, one that loses it, one that loses its source.
	changed := []datapath.Route{unreachable("10.2.0.0/16"), {Dst: vip4.Dst}, unreachable("fd00:2::/64"), {Dst: vip6.Dst}}
	must(t, problem.Strict(r.Reconcile(changed, false)))
	holds(t, r, changed[0], noSrc, changed[1], changed[2], changed[3])
	must(t, problem.Strict(r.Reconcile([]datapath.Route{v4, v6}, false)))
	holds(t, r, v4, noSrc, changed[1], v6, changed[3])

	narrow4, narrow6 := v4, v6
	narrow4.MTU, narrow6.MTU = 1312, 1296
	must(t, problem.Strict(r.Reconcile([]datapath.Route{narrow4, narrow6}, false)))
	holds(t, r, narrow4, noSrc, changed[1], narrow6, changed[3])
	must(t, problem.Strict(r.Reconcile([]datapath.Route{v4, v6}, false)))
	holds(t, r, v4, noSrc, changed[1], v6, changed[3])

	must(t, problem.Strict(r.Reconcile(nil, false)))
	holds(t, r, v4, noSrc, changed[1], v6, changed[3])
	must(t, problem.Strict(r.Reconcile([]datapath.Route{v4}, true)))
	holds(t, r, v4)
	must(t, problem.Strict(r.Reconcile(nil, true)))
	holds(t, r)
}

// TestDefaultRoutes: a prefix of length 0 has no destination attribute in netlink.
func TestDefaultRoutes(t *testing.T) {
	testutil.NetNS(t)
	r := router(t)
	all := []datapath.Route{unreachable("0.0.0.0/0"), unreachable("::/0")}
	for range 2 {
		must(t, problem.Strict(r.Reconcile(all, true)))
		holds(t, r, all...)
	}
	must(t, problem.Strict(r.Reconcile(nil, true)))
	holds(t, r)
}

func TestUnreachableFailsAtOnce(t *testing.T) {
	testutil.NetNS(t)
	r := router(t)
	must(t, problem.Strict(r.Reconcile([]datapath.Route{unreachable("10.99.0.0/16"), unreachable("fd00:99::/64"), tunnelTo("10.2.0.0/16", "10.1.0.1")}, true)))
	for _, addr := range []string{"10.99.0.1:80", "[fd00:99::1]:80"} {
		begin := time.Now()
		err := dial(addr, time.Second)
		if !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("connect to %s: %v, want EHOSTUNREACH or ENETUNREACH", addr, err)
		}
		if d := time.Since(begin); d > 200*time.Millisecond {
			t.Errorf("connect to %s took %v", addr, d)
		}
	}
	// The same connect through the tunnel, without a listener, waits.
	var netErr net.Error
	if err := dial("10.2.0.1:80", 300*time.Millisecond); !errors.As(err, &netErr) || !netErr.Timeout() {
		t.Errorf("connect through the tunnel: %v, want a time-out", err)
	}
}

// dial connects on this thread, and so in its namespace, as net.Dial on a literal address does.
func dial(addr string, timeout time.Duration) error {
	c, err := (&net.Dialer{Timeout: timeout}).Dial("tcp", addr)
	if err == nil {
		c.Close()
	}
	return err
}

func TestForeignRouteIsUntouched(t *testing.T) {
	testutil.NetNS(t)
	r := router(t)
	link, err := netlink.LinkByName(device)
	must(t, err)
	foreign := func(dst string) netlink.Route {
		_, n, err := net.ParseCIDR(dst)
		must(t, err)
		return netlink.Route{Dst: n, LinkIndex: link.Attrs().Index, Table: route.DefaultTable, Protocol: unix.RTPROT_STATIC, Scope: netlink.SCOPE_LINK}
	}
	// One beside ours, and one to the very destination that strait wants.
	for _, dst := range []string{"10.7.0.0/16", "10.2.0.0/16", "fd00:2::/64"} {
		f := foreign(dst)
		must(t, netlink.RouteAdd(&f))
	}
	ours := []datapath.Route{tunnelTo("10.2.0.0/16", "10.1.0.1"), tunnelTo("fd00:2::/64", "fd00:1::1")}
	must(t, problem.Strict(r.Reconcile(ours, true)))
	holds(t, r, ours...)
	must(t, problem.Strict(r.Reconcile(nil, true)))
	must(t, route.CleanUp(route.Config{})) // without a device: the routes would go with it
	left, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: route.DefaultTable}, netlink.RT_FILTER_TABLE)
	must(t, err)
	if len(left) != 3 {
		t.Errorf("foreign routes left: %v, want 3", left)
	}
}

// Routes that cannot be are Problems that name them, and what to do; the others come, and what is unwanted goes.
func TestRefusedRoutesStopNothing(t *testing.T) {
	testutil.NetNS(t)
	r := router(t)
	must(t, problem.Strict(r.Reconcile([]datapath.Route{tunnelTo("10.9.0.0/16", "10.1.0.1")}, true)))
	problems, err := r.Reconcile([]datapath.Route{
		tunnelTo("10.2.0.0/16", "10.77.0.1"), // no address of this node
		tunnelTo("10.3.0.0/16", "fd00:1::1"), // the other family
		{},
		tunnelTo("10.4.0.0/16", "10.1.0.1"),
	}, true)
	must(t, err)
	for _, want := range []string{"route 10.2.0.0/16: ", "check whether 10.77.0.1 is an address of this node", "route 10.3.0.0/16: ", "route invalid Prefix: "} {
		if len(problems) != 3 || !slices.ContainsFunc(problems, func(p problem.Problem) bool { return strings.Contains(p.String(), want) }) {
			t.Errorf("Problems %v do not name %q", problems, want)
		}
	}
	holds(t, r, tunnelTo("10.4.0.0/16", "10.1.0.1"))

	// Without a device, unreachable routes still work, and it is named once.
	gone := route.New(route.Config{Device: "strait-none"})
	err = problem.Strict(gone.Reconcile([]datapath.Route{unreachable("10.99.0.0/16"), tunnelTo("10.4.0.0/16", "10.1.0.1"), tunnelTo("10.5.0.0/16", "10.1.0.1")}, false))
	if err == nil || strings.Count(err.Error(), "strait-none") != 1 {
		t.Errorf("error %v does not name the missing device once", err)
	}
	holds(t, r, tunnelTo("10.4.0.0/16", "10.1.0.1"), unreachable("10.99.0.0/16"))
}

func TestSetUp(t *testing.T) {
	testutil.NetNS(t)
	addTUN(t, device)
	r := route.New(route.Config{Device: device})
	for _, addr := range []string{"10.1.0.1/32", "10.1.0.1/32", "fd00:1::1/128", "10.1.0.2/16"} {
		want := netip.MustParsePrefix(addr)
		must(t, r.SetUp(device, 1380, want))
		must(t, r.SetUp(device, 0, netip.Prefix{})) // changes nothing
		l, err := netlink.LinkByName(device)
		must(t, err)
		if l.Attrs().MTU != 1380 || l.Attrs().RawFlags&unix.IFF_UP == 0 {
			t.Errorf("MTU %d, flags %v", l.Attrs().MTU, l.Attrs().Flags)
		}
		addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		must(t, err)
		if len(addrs) != 1 || addrs[0].IPNet.String() != addr {
			t.Errorf("addresses %v, want %s", addrs, addr)
		}
	}
	main, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	must(t, err)
	if len(main) != 0 {
		t.Errorf("the address brought routes: %v", main)
	}
}

// TestNoLinkLocal: a tunnel whose process runs has no link-local address, when it is new, and when an older version or
// another program gave it one.
func TestNoLinkLocal(t *testing.T) {
	testutil.NeedTun(t)
	testutil.NetNS(t)
	tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: device}, Mode: netlink.TUNTAP_MODE_TUN, Queues: 1, NonPersist: true}
	must(t, netlink.LinkAdd(tun))
	t.Cleanup(func() {
		for _, f := range tun.Fds {
			f.Close()
		}
	})
	r := route.New(route.Config{Device: device})
	for _, when := range []string{"new", "added", "was up before"} {
		l, err := netlink.LinkByName(device)
		must(t, err)
		switch when {
		case "added":
			must(t, netlink.AddrAdd(l, mustAddr("fe80::7/64", unix.IFA_F_NODAD)))
		case "was up before":
			must(t, netlink.LinkSetDown(l))
			must(t, netlink.LinkSetIP6AddrGenMode(l, nl.IN6_ADDR_GEN_MODE_RANDOM))
			must(t, netlink.LinkSetUp(l))
			if len(linkLocal(t, l)) == 0 {
				t.Error("the kernel gave the device no link-local address: the test shows nothing")
			}
		}
		must(t, r.SetUp(device, 1380, netip.MustParsePrefix("10.1.0.1/32")))
		if got := linkLocal(t, l); len(got) > 0 {
			t.Errorf("%s: link-local addresses %v", when, got)
		}
	}
}

func linkLocal(t *testing.T, l netlink.Link) []netlink.Addr {
	t.Helper()
	all, err := netlink.AddrList(l, netlink.FAMILY_V6)
	must(t, err)
	return slices.DeleteFunc(all, func(a netlink.Addr) bool { return !a.IP.IsLinkLocalUnicast() })
}

func TestAddWireGuard(t *testing.T) {
	testutil.NetNS(t)
	r := route.New(route.Config{Device: device})
	err := r.AddWireGuard("wg-real")
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		t.Log("this kernel has no WireGuard:", err)
	default:
		must(t, err)
		must(t, r.AddWireGuard("wg-real"))
		must(t, route.CleanUp(route.Config{Device: "wg-real"}))
	}
	addTUN(t, device)
	err = r.AddWireGuard(device)
	if err == nil || errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "tuntap") {
		t.Errorf("on a TUN: %v", err)
	}
	if err := r.AddWireGuard("a-name-that-is-too-long"); err == nil {
		t.Error("too long a name is accepted")
	}
}

func TestAddressesAndUnderlayMTUs(t *testing.T) {
	testutil.NetNS(t)
	r := router(t)
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "cni0", MTU: 1450}}))
	cni, err := netlink.LinkByName("cni0")
	must(t, err)
	must(t, netlink.AddrAdd(cni, mustAddr("10.8.3.1/24", 0)))
	must(t, netlink.AddrAdd(cni, mustAddr("fd00:8::1/64", unix.IFA_F_NODAD)))
	must(t, netlink.LinkSetUp(cni))
	got, err := r.Addresses()
	must(t, err)
	for text, want := range map[string]bool{"10.8.3.1": true, "fd00:8::1": true, "192.0.2.1": false} {
		if slices.Contains(got, netip.MustParseAddr(text)) != want {
			t.Errorf("addresses %v: has %s is not %v", got, text, want)
		}
	}

	mtus := func(dsts ...string) []int {
		t.Helper()
		var as []netip.Addr
		for _, d := range dsts {
			as = append(as, netip.MustParseAddr(d))
		}
		got, err := r.UnderlayMTUs(as)
		must(t, err)
		return got
	}
	for _, dst := range []string{"10.8.3.9", "fd00:8::9"} {
		if got := mtus(dst); got[0] != 1450 {
			t.Errorf("MTU towards %s: %d", dst, got)
		}
	}
	_, lower, _ := net.ParseCIDR("10.8.3.9/32")
	must(t, netlink.RouteAdd(&netlink.Route{Dst: lower, LinkIndex: cni.Attrs().Index, MTU: 1300, Scope: netlink.SCOPE_LINK}))
	all := mtus("10.8.3.7", "203.0.113.1", "10.8.3.9", "fd00:8::9")
	if want := []int{1450, 0, 1300, 1450}; !slices.Equal(all, want) {
		t.Errorf("MTUs of a link, without a route, of a narrow route, of IPv6: %v, want %v", all, want)
	}
}

// While the kernel is watched it is asked again only for what changed. What is asked from another namespace has other
// answers, and so tells who asked.
func TestAsksOnce(t *testing.T) {
	ns := testutil.NetNS(t)
	r := route.New(route.Config{Device: "strait0"})
	// The kernel gives a link an IPv6 address when it pleases.
	must(t, os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0))
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "under0", MTU: 1450}}))
	under, err := netlink.LinkByName("under0")
	must(t, err)
	must(t, netlink.AddrAdd(under, mustAddr("10.8.3.1/24", 0)))
	must(t, netlink.LinkSetUp(under))
	changed := ns.Watch(t, r.Watch)
	first, second := netip.MustParseAddr("10.8.3.9"), netip.MustParseAddr("10.8.3.10")
	ask := func(dsts ...netip.Addr) (mtu, addrs int) {
		t.Helper()
		mtus, err := r.UnderlayMTUs(dsts)
		must(t, err)
		own, err := r.Addresses()
		must(t, err)
		return slices.Max(mtus), len(own)
	}
	mtu, known := ask(first)
	if mtu != 1450 || known == 0 {
		t.Fatalf("MTU %d, %d addresses", mtu, known)
	}
	testutil.NetNS(t) // from here on a lookup finds no route and only lo's addresses
	here := len(mustAddrs(t))
	if here == known {
		t.Fatal("the namespaces cannot be distinguished")
	}
	if mtu, addrs := ask(first); mtu != 1450 || addrs != known {
		t.Errorf("asked again: MTU %d, %d addresses", mtu, addrs)
	}
	if mtu, _ := ask(first, second); mtu != 1450 {
		t.Errorf("asked again for all when one was new: MTU %d", mtu)
	}

	must(t, ns.Do(func() error { return netlink.LinkSetMTU(under, 1400) }))
	if !testutil.Signalled(r.Underlay(), 5*time.Second) {
		t.Error("no signal that an underlay has another MTU")
	}
	if mtu, addrs := ask(first); mtu != 0 || addrs != known {
		t.Errorf("after another MTU: MTU %d, %d addresses", mtu, addrs)
	}
	must(t, ns.Do(func() error {
		r.Forget()
		mtu, _ = ask(first)
		return netlink.RouteAdd(&netlink.Route{LinkIndex: under.Attrs().Index, Gw: second.AsSlice()})
	}))
	if mtu != 1400 || !testutil.Signalled(r.Underlay(), 5*time.Second) {
		t.Errorf("MTU %d, or no signal of a new default route", mtu)
	}
	must(t, ns.Do(func() error {
		r.Forget()
		ask(first)
		return netlink.AddrAdd(under, mustAddr("10.8.4.1/24", 0))
	}))
	if !testutil.Signalled(changed, 5*time.Second) {
		t.Error("no signal of a new address")
	}
	if _, addrs := ask(first); addrs != here {
		t.Errorf("after another address: %d addresses", addrs)
	}
	r.Forget()
	must(t, ns.Do(func() error { ask(first); return nil }))
	r.Forget()
	if mtu, addrs := ask(first); mtu != 0 || addrs != here {
		t.Errorf("after Forget: MTU %d, %d addresses", mtu, addrs)
	}
}

func mustAddrs(t *testing.T) []netip.Addr {
	t.Helper()
	own, err := route.New(route.Config{}).Addresses()
	must(t, err)
	return own
}

func TestWatch(t *testing.T) {
	ns := testutil.NetNS(t)
	r := router(t)
	v4, v6, vip := tunnelTo("10.2.0.0/16", "10.1.0.1"), tunnelTo("fd00:2::/64", "fd00:1::1"), unreachable("10.99.0.0/16")
	all := []datapath.Route{v4, vip, v6}
	must(t, problem.Strict(r.Reconcile(all, true)))
	changed := ns.Watch(t, r.Watch)
	link, err := netlink.LinkByName(device)
	must(t, err)

	del := func(dst string) func() {
		return func() {
			rs, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: route.DefaultTable}, netlink.RT_FILTER_TABLE)
			must(t, err)
			for _, nr := range rs {
				if nr.Dst.String() == dst {
					must(t, netlink.RouteDel(&nr))
					return
				}
			}
			t.Fatalf("no route %s to delete", dst)
		}
	}
	for name, breakIt := range map[string]func(){
		"route":             del("10.2.0.0/16"),
		"IPv6 route":        del("fd00:2::/64"),
		"unreachable route": del("10.99.0.0/16"),
		"rule":              func() { must(t, netlink.RuleDel(&rules(t, netlink.FAMILY_V4)[0])) },
		"IPv6 rule":         func() { must(t, netlink.RuleDel(&rules(t, netlink.FAMILY_V6)[0])) },
		"device down":       func() { must(t, netlink.LinkSetDown(link)) },
		"source address":    func() { must(t, netlink.AddrDel(link, mustAddr("10.1.0.1/32", 0))) },
	} {
		t.Log(name)
		breakIt()
		if !testutil.Signalled(changed, 5*time.Second) {
			t.Errorf("%s: no signal", name)
		}
		must(t, r.SetUp(device, 1380, netip.MustParsePrefix("10.1.0.1/32")))
		if err := netlink.AddrReplace(link, mustAddr("fd00:1::1/128", unix.IFA_F_NODAD)); err != nil {
			t.Fatal(err)
		}
		must(t, problem.Strict(r.Reconcile(all, true)))
		holds(t, r, v4, vip, v6)
		for testutil.Signalled(changed, 100*time.Millisecond) { // of the repair itself
		}
	}

	// Strait's own pruning and foreign routes are no news.
	must(t, problem.Strict(r.Reconcile([]datapath.Route{v4}, true)))
	_, n, _ := net.ParseCIDR("10.55.0.0/16")
	f := netlink.Route{Dst: n, LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK}
	must(t, netlink.RouteAdd(&f))
	must(t, netlink.RouteDel(&f))
	if testutil.Signalled(changed, 300*time.Millisecond) {
		t.Error("a signal although nothing of ours was lost")
	}
}

func TestCleanUp(t *testing.T) {
	testutil.NetNS(t)
	cfg := route.Config{Device: device}
	must(t, route.CleanUp(cfg)) // nothing there
	r := router(t)
	must(t, problem.Strict(r.Reconcile([]datapath.Route{tunnelTo("10.2.0.0/16", "10.1.0.1"), unreachable("fd00:99::/64")}, true)))
	for range 2 {
		must(t, route.CleanUp(cfg))
		holds(t, r)
		if n := len(rules(t, netlink.FAMILY_V4)) + len(rules(t, netlink.FAMILY_V6)); n != 0 {
			t.Errorf("%d rules left", n)
		}
		if _, err := netlink.LinkByName(device); err == nil {
			t.Error("the device is left")
		}
	}
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: device}}))
	if err := route.CleanUp(cfg); err == nil {
		t.Error("a foreign device was deleted")
	}
}
