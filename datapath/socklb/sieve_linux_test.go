package socklb

import (
	"net/netip"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
)

// TestSieve: the programs ask the map of opt-outs only about cgroups that the sieve lets through, and the sieve lets
// through whatever is in the map, at any moment of a change.
func TestSieve(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	pod, f := subtree(t, "pod"), families[0]
	vip := netip.AddrPortFrom(f.vip, 80)
	reconcile(t, l, datapath.Frontend{Addr: l4.New(vip.Addr(), vip.Port(), l4.UDP), Backends: one(netip.AddrPortFrom(f.pod, 9))})
	check := func(when string, want bool) {
		t.Helper()
		in(t, pod, func() {
			if got := served(t, f, vip); got != want {
				t.Errorf("%s: served %v", when, got)
			}
		})
	}
	check("before", true)
	if err := l.SetOptOut([]string{pod}); err != nil {
		t.Fatal(err)
	}
	check("opted out", false)
	var sieve layout.OptOutSieve
	if err := l.maps.OptoutLevels.Lookup(uint32(0), &sieve); err != nil {
		t.Fatal(err)
	}
	for i, word := range sieve.Bits { // what is left of it names the same level, and another cgroup
		sieve.Bits[i] = word<<1 | word>>63
	}
	if err := l.maps.OptoutLevels.Put(uint32(0), sieve); err != nil {
		t.Fatal(err)
	}
	check("its bit is another's", true)
	if err := l.SetOptOut([]string{pod}); err != nil { // writes the sieve even if nothing changed
		t.Fatal(err)
	}
	check("repaired", false)
	if err := l.SetOptOut(nil); err != nil {
		t.Fatal(err)
	}
	check("withdrawn", true)
}
