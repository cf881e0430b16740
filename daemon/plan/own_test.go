package plan_test

import (
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
)

// Every port of a ClusterSetIP is strait's: of the whole range, or of the addresses that the cluster gave out, also
// while nothing is exported under them any more. A global service's ClusterIP is not.
func TestPlanOwn(t *testing.T) {
	s := clusterset()
	self := plan.Self{Cluster: "a", Node: "n1"}
	got := once(s, self, plan.Config{CIDRs: []netip.Prefix{netip.MustParsePrefix("fd00:241::1/112"), netip.MustParsePrefix("241.0.0.1/8")}}).Desired.Own
	want := datapath.Own{Prefixes: []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8"), netip.MustParsePrefix("fd00:241::/112")}}
	if !got.Equal(want) {
		t.Errorf("with ranges: %v, want %v", got, want)
	}
	gone := clustermesh.Allocation{Service: clustermesh.ServiceName{Namespace: "default", Name: "gone"}, IP: netip.MustParseAddr("10.96.0.1")}
	edit(&s, "a", "", func(c *clustermesh.Content) {
		c.Allocations = []clustermesh.Allocation{{Service: serve, IP: netip.MustParseAddr("10.96.0.9")}, gone}
	})
	p := newSeries(self, plan.Config{})
	first := p.plan(s).Desired.Own
	if want := []netip.Addr{gone.IP, netip.MustParseAddr("10.96.0.9")}; !slices.Equal(first.Addrs, want) || first.Prefixes != nil {
		t.Errorf("with derived Services: %v, want %v", first, want)
	}
	if again := p.plan(s).Desired.Own; &again.Addrs[0] != &first.Addrs[0] {
		t.Error("nothing changed, and the list is a new one")
	}
	if got := once(globalset(), self, plan.Config{}).Desired.Own; !got.Equal(datapath.Own{}) {
		t.Errorf("a global service: %v, want nothing", got)
	}
}
