package plan_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// whyNot returns why the endpoint at an address has no connections of an import's; empty if it has.
func whyNot(r plan.Result, addr string) string {
	for _, v := range r.Imports[0].Frontends()[0].Choice.Verdicts {
		if v.Addr.Addr() == netip.MustParseAddr(addr) {
			return v.Barred
		}
	}
	return "not listed"
}

// TestEndpointsOfOthers: no client is sent to a machine of another cluster, nor into a tunnel that leads to
// another node than the endpoint's. Who states another's address gains nothing, and takes nothing from it.
func TestEndpointsOfOthers(t *testing.T) {
	lists := func(cluster, node, addr string) func(*clustermesh.State) {
		return func(s *clustermesh.State) {
			edit(s, cluster, node, func(c *clustermesh.Content) { c.Endpoints[0].Addr = netip.MustParseAddr(addr) })
		}
	}
	states := func(cluster, node, addr string) func(*clustermesh.State) {
		return func(s *clustermesh.State) { live(s, cluster, node, addr) }
	}
	has := func(cluster, node, prefix string) func(*clustermesh.State) {
		return func(s *clustermesh.State) { pods(s, cluster, node, prefix) }
	}
	for _, tc := range []struct {
		name    string
		change  []func(*clustermesh.State)
		addr    string
		barred  string // what the reason has
		fresh   string // the same for a plan without a past; if it differs
		backend bool
	}{
		{"a third cluster's machine", []func(*clustermesh.State){lists("b", "n1", "172.31.3.1")}, "172.31.3.1", "that of a node of cluster c", "", false},
		{"this cluster's machine", []func(*clustermesh.State){lists("b", "n1", "172.31.1.2")}, "172.31.1.2", "that of a node of cluster a", "", false},
		{"its own machine", []func(*clustermesh.State){lists("b", "n1", "172.31.2.1")}, "172.31.2.1", "", "", true},
		{"a machine that it claims", []func(*clustermesh.State){lists("b", "n1", "172.31.3.1"), states("b", "n1", "172.31.3.1")}, "172.31.3.1",
			"that of a node of cluster c", "not known whose", false},
		{"its own machine, which another cluster claims and proves nothing of", []func(*clustermesh.State){lists("b", "n1", "172.31.2.1"), states("c", "n1", "172.31.2.1"), met("b", "n1")}, "172.31.2.1", "", "", true},
		{"its own pod, of which another cluster says it is a machine", []func(*clustermesh.State){states("c", "n1", "10.2.1.10")}, "10.2.1.10", "", "does not have the prefix", true},
		{"in a prefix that another node keeps", []func(*clustermesh.State){has("c", "n1", "10.2.1.0/24"), lists("c", "n1", "10.2.1.77")}, "10.2.1.77",
			"belongs to a node of cluster b", "does not have the prefix", false},
		{"of the node that keeps it", []func(*clustermesh.State){has("c", "n1", "10.2.1.0/24")}, "10.2.1.10", "", "does not have the prefix", true},
	} {
		s := clusterset()
		edit(&s, "a", "", func(c *clustermesh.Content) { c.Exports = nil })
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
		p.plan(s)
		s = clustermesh.State{Records: s.Records, Contacts: s.Contacts}
		for _, change := range tc.change {
			change(&s)
		}
		r := p.plan(s)
		check := func(r plan.Result, want string) {
			t.Helper()
			if got := whyNot(r, tc.addr); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s: barred because it %q, want %q", tc.name, got, want)
			}
		}
		check(r, tc.barred)
		if tc.fresh == "" {
			tc.fresh = tc.barred
		}
		check(planFor(s), tc.fresh)
		if got := slices.Contains(strings.Fields(backends(r)), tc.addr+":8080"); got != tc.backend {
			t.Errorf("%s: backends %s", tc.name, backends(r))
		}
		for _, e := range r.Imports[0].Endpoints() {
			if e.Addr == netip.MustParseAddr(tc.addr) && e.Cluster != "a" && !tc.backend {
				t.Errorf("%s: DNS has it", tc.name)
			}
		}
	}
}

// met makes a node prove who it is at its first address.
func met(cluster, node string) func(*clustermesh.State) {
	return func(s *clustermesh.State) {
		o := origin(cluster, node)
		s.Proven = s.Proven.With(o, netip.AddrPortFrom(s.Records.Get(o).Content.Node.Addresses[0], 7946))
	}
}
