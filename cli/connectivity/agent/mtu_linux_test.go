package agent

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"strait.io/strait/cli/connectivity"
	"strait.io/strait/internal/testutil"
)

// TestPathMTU: the MTU of a link is found to the byte.
func TestPathMTU(t *testing.T) {
	testutil.NetNS(t)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for _, mtu := range []int{1500, 1420} {
		if err := netlink.LinkSetMTU(lo, mtu); err != nil {
			t.Fatal(err)
		}
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), serve(t, connectivity.Identity{Cluster: "c1", Node: "n1", Pod: "pod-1"}))
		if got, err := pathMTU(t.Context(), at); got != mtu {
			t.Errorf("MTU %d, %v, want %d", got, err, mtu)
		}
	}
}
