package route_test

import (
	"testing"

	"github.com/vishvananda/netlink"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/route"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

func rules(t *testing.T, family int) (ours []netlink.Rule) {
	t.Helper()
	all, err := netlink.RuleList(family)
	must(t, err)
	for _, r := range all {
		if r.Table == route.DefaultTable {
			ours = append(ours, r)
		}
	}
	return ours
}

func TestRule(t *testing.T) {
	testutil.NetNS(t)
	r := router(t)
	foreign := netlink.NewRule()
	foreign.Table, foreign.Priority, foreign.Family = route.DefaultTable, 700, netlink.FAMILY_V4
	must(t, netlink.RuleAdd(foreign))
	for range 3 {
		must(t, problem.Strict(r.Reconcile(nil, true)))
	}
	if v4, v6 := rules(t, netlink.FAMILY_V4), rules(t, netlink.FAMILY_V6); len(v4) != 2 || len(v6) != 1 {
		t.Errorf("rules after three times: %v and %v, want ours once each, and the foreign one", v4, v6)
	}

	// Another priority: the new rule comes, the old one goes only with prune.
	moved := route.New(route.Config{Device: device, Priority: 600})
	must(t, problem.Strict(moved.Reconcile(nil, false)))
	if v4 := rules(t, netlink.FAMILY_V4); len(v4) != 3 {
		t.Errorf("rules without prune: %v", v4)
	}
	must(t, problem.Strict(moved.Reconcile(nil, true)))
	v4 := rules(t, netlink.FAMILY_V4)
	if len(v4) != 2 || v4[0].Priority != 600 || v4[1].Priority != 700 {
		t.Errorf("rules with prune: %v", v4)
	}
}

// TestRuleOfBefore: the rule of a version that did not mark the tunnel's packets is replaced.
func TestRuleOfBefore(t *testing.T) {
	testutil.NetNS(t)
	r := router(t)
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		old := netlink.NewRule()
		old.Table, old.Priority, old.Family, old.Protocol = route.DefaultTable, route.DefaultPriority, family, route.Protocol
		must(t, netlink.RuleAdd(old))
	}
	must(t, problem.Strict(r.Reconcile(nil, false)))
	if v4, v6 := rules(t, netlink.FAMILY_V4), rules(t, netlink.FAMILY_V6); len(v4) != 2 || len(v6) != 2 {
		t.Errorf("rules without prune: %v and %v, want the old and the new", v4, v6)
	}
	must(t, problem.Strict(r.Reconcile(nil, true)))
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		left := rules(t, family)
		if len(left) != 1 || !left[0].Invert || left[0].Mark != datapath.TunnelMark {
			t.Errorf("rules with prune: %v, want one that leaves out the tunnel's own packets", left)
		}
	}
}
