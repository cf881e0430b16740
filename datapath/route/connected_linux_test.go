package route_test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/route"
	"strait.io/strait/internal/testutil"
)

func TestConnected(t *testing.T) {
	ns := testutil.NetNS(t)
	addTUN(t, device)
	r := route.New(route.Config{Device: device})
	must(t, r.SetUp(device, 1380, netip.Prefix{}))
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "under0"}}))
	under, err := netlink.LinkByName("under0")
	must(t, err)
	must(t, netlink.AddrAdd(under, mustAddr("10.8.3.1/24", 0)))
	must(t, netlink.AddrAdd(under, mustAddr("fd00:8::1/64", unix.IFA_F_NODAD)))
	must(t, netlink.LinkSetUp(under))
	tunnel, err := netlink.LinkByName(device)
	must(t, err)
	add := func(r netlink.Route, dst string) {
		t.Helper()
		if dst != "" {
			_, r.Dst, err = net.ParseCIDR(dst)
			must(t, err)
		}
		must(t, netlink.RouteAdd(&r))
	}
	index := under.Attrs().Index
	add(netlink.Route{LinkIndex: index, Scope: netlink.SCOPE_LINK}, "192.0.2.0/24")                            // without an address in it
	add(netlink.Route{LinkIndex: index, Gw: net.ParseIP("10.8.3.254")}, "")                                    // the default
	add(netlink.Route{LinkIndex: index, Gw: net.ParseIP("10.8.3.253")}, "198.51.100.0/24")                     // behind a gateway
	add(netlink.Route{LinkIndex: index, Scope: netlink.SCOPE_LINK, Protocol: unix.RTPROT_BGP}, "10.77.0.0/24") // a routing daemon's
	add(netlink.Route{Type: unix.RTN_BLACKHOLE}, "10.78.0.0/24")
	add(netlink.Route{LinkIndex: tunnel.Attrs().Index, Scope: netlink.SCOPE_LINK}, "10.79.0.0/24")

	want := func(texts ...string) func() error {
		return func() error {
			got, err := r.Connected()
			if err != nil {
				return err
			}
			var all []string
			for _, p := range got {
				all = append(all, p.String())
			}
			if !slices.Equal(all, texts) {
				return fmt.Errorf("connected to %v, want %v", all, texts)
			}
			return nil
		}
	}
	// The kernel makes IPv6 routes a moment after the address.
	testutil.Eventually(t, 5*time.Second, want("10.8.3.0/24", "10.8.3.254/32", "192.0.2.0/24", "fd00:8::/64"))

	// While it is watched, the answer is cached until it changes.
	ns.Watch(t, r.Watch)
	must(t, want("10.8.3.0/24", "10.8.3.254/32", "192.0.2.0/24", "fd00:8::/64")())
	add(netlink.Route{LinkIndex: index, Scope: netlink.SCOPE_LINK}, "203.0.113.0/24")
	testutil.Eventually(t, 5*time.Second, want("10.8.3.0/24", "10.8.3.254/32", "192.0.2.0/24", "203.0.113.0/24", "fd00:8::/64"))
	must(t, netlink.AddrDel(under, mustAddr("fd00:8::1/64", 0)))
	testutil.Eventually(t, 5*time.Second, want("10.8.3.0/24", "10.8.3.254/32", "192.0.2.0/24", "203.0.113.0/24"))
}
