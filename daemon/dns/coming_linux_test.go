package dns

import (
	"net/netip"
	"os/exec"
	"testing"

	"strait.io/strait/internal/testutil"
)

// TestServerOfComingAddress: an address is served from the moment that the machine gets it, without a Problem before,
// over both IP families and protocols, and the answers come from it.
func TestServerOfComingAddress(t *testing.T) {
	if !testutil.Inside(t, 0) {
		return
	}
	v4, v6 := netip.MustParseAddrPort("169.254.20.11:53"), netip.MustParseAddrPort("[fd00:53::11]:53")
	s := run(t, Config{Listen: []netip.AddrPort{v4, v6}, Coming: []netip.Addr{v4.Addr(), v6.Addr()}}, testTable)
	eventually(t, "four listeners", func() bool { return s.listeners() == 4 })
	if p := s.Problems(); len(p) != 0 {
		t.Errorf("problems %v", p)
	}
	for _, addr := range []netip.AddrPort{v4, v6} {
		// As datapath/route makes it.
		out, err := exec.CommandContext(t.Context(), "ip", "route", "add", "local", addr.Addr().String(), "dev", "lo", "table", "local").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, network := range []string{"udp", "tcp"} {
			if got := show(exchangeWith(t, network, addr, ask("serve.default.svc.clusterset.local.", "A"))); got != "10.255.0.1" {
				t.Errorf("%s %s: got %q", network, addr, got)
			}
		}
	}
}
