package route_test

import (
	"os"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"strait.io/strait/datapath/route"
	"strait.io/strait/internal/testutil"
)

// TestStrict: a link that filters strictly matters only beside another one by which the same machines can
// send, and the setting of all links counts if it is larger.
func TestStrict(t *testing.T) {
	ns := testutil.NetNS(t)
	set := func(link, value string) {
		t.Helper()
		must(t, ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/"+link+"/rp_filter", []byte(value), 0) }))
	}
	add := func(name, addr, gateway string, metric int) {
		t.Helper()
		must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
		l, err := netlink.LinkByName(name)
		must(t, err)
		must(t, netlink.AddrAdd(l, mustAddr(addr, 0)))
		must(t, netlink.LinkSetUp(l))
		set(name, "1")
		if gateway != "" {
			must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: mustAddr(gateway+"/32", 0).IP, Priority: metric}))
		}
	}
	is := func(what string, want ...string) {
		t.Helper()
		must(t, ns.Do(func() error {
			got, err := route.Strict(os.DirFS("/"))
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
			return err
		}))
	}
	set("all", "0")
	add("up0", "10.8.1.1/24", "10.8.1.254", 1)
	add("pods0", "10.8.3.1/24", "", 0)
	is("one way out")
	add("up1", "10.8.2.1/24", "10.8.2.254", 2)
	is("two ways out", "up0", "up1")
	set("up0", "2")
	is("one is loose", "up1")
	set("up1", "0")
	is("both are not strict")
	set("all", "1")
	is("all are strict, but one is loose", "up1")
	set("all", "2")
	is("all are loose")
}
