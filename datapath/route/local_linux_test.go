package route_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath/route"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

var dns4, dns6 = netip.MustParseAddr("169.254.20.11"), netip.MustParseAddr("fd00:53::11")

// isLocal reports whether the kernel takes packets to an address for this machine's.
func isLocal(t *testing.T, a netip.Addr) bool {
	t.Helper()
	routes, err := netlink.RouteGet(a.AsSlice())
	return err == nil && routes[0].Type == unix.RTN_LOCAL
}

func locals(t *testing.T, want ...netip.Addr) {
	t.Helper()
	for _, a := range []netip.Addr{dns4, dns6} {
		if got := isLocal(t, a); got != slices.Contains(want, a) {
			t.Errorf("%s is this machine's: %v", a, got)
		}
	}
}

func TestLocal(t *testing.T) {
	testutil.NetNS(t)
	with := route.New(route.Config{Local: []netip.Addr{dns4, dns6}})
	only4 := route.New(route.Config{Local: []netip.Addr{dns4}})
	without := route.New(route.Config{})
	locals(t)
	for range 2 {
		must(t, problem.Strict(with.Reconcile(nil, true)))
		locals(t, dns4, dns6)
	}
	must(t, problem.Strict(only4.Reconcile(nil, false)))
	locals(t, dns4, dns6)
	must(t, problem.Strict(only4.Reconcile(nil, true)))
	locals(t, dns4)

	// Another daemon's on this machine is not ours to remove.
	other := route.Config{Table: 5355, Priority: 501, Local: []netip.Addr{dns6}}
	must(t, problem.Strict(route.New(other).Reconcile(nil, true)))
	must(t, problem.Strict(without.Reconcile(nil, true)))
	locals(t, dns6)
	must(t, route.CleanUp(other))
	locals(t)
	must(t, problem.Strict(with.Reconcile(nil, true)))
	must(t, route.CleanUp(route.Config{}))
	locals(t)
}

// TestLocalOfOthers: an address that the machine has anyhow stays when strait's route to it goes.
func TestLocalOfOthers(t *testing.T) {
	testutil.NetNS(t)
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.AddrAdd(lo, mustAddr("169.254.20.11/32", 0)))
	must(t, netlink.AddrAdd(lo, mustAddr("fd00:53::11/128", unix.IFA_F_NODAD)))
	// The kernel makes the route of an IPv6 address a moment after the address.
	testutil.Eventually(t, 5*time.Second, func() error {
		if !isLocal(t, dns6) {
			return fmt.Errorf("%s is not yet this machine's", dns6)
		}
		return nil
	})
	r := route.New(route.Config{Local: []netip.Addr{dns4, dns6}})
	must(t, problem.Strict(r.Reconcile(nil, true)))
	must(t, route.CleanUp(route.Config{}))
	locals(t, dns4, dns6)
	// And strait's is there when that goes.
	must(t, problem.Strict(r.Reconcile(nil, true)))
	must(t, netlink.AddrDel(lo, mustAddr("169.254.20.11/32", 0)))
	must(t, netlink.AddrDel(lo, mustAddr("fd00:53::11/128", 0)))
	locals(t, dns4, dns6)
}

func TestWatchLocal(t *testing.T) {
	ns := testutil.NetNS(t)
	r := route.New(route.Config{Local: []netip.Addr{dns4, dns6}})
	must(t, problem.Strict(r.Reconcile(nil, true)))
	changed := ns.Watch(t, r.Watch)
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		found, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_LOCAL, Protocol: route.Protocol},
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
		must(t, err)
		if len(found) != 1 {
			t.Fatalf("routes of strait's in the local table: %v, want one", found)
		}
		must(t, netlink.RouteDel(&found[0]))
		if !testutil.Signalled(changed, 5*time.Second) {
			t.Errorf("no signal that %s is gone", found[0].Dst)
		}
		must(t, problem.Strict(r.Reconcile(nil, true)))
		locals(t, dns4, dns6)
	}
}
