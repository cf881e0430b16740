package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
)

// sameHash returns names of a node of b and of one of c to which strait gives the same address.
func sameHash(t *testing.T) (b, c clustermesh.Origin, p netip.Prefix) {
	at := map[netip.Addr]clustermesh.Origin{}
	for i := range 1 << 14 {
		o := origin("b", fmt.Sprint("m", i))
		at[clustermesh.TunnelAddr(o, false)] = o
	}
	for i := range 1 << 14 {
		o := origin("c", fmt.Sprint("m", i))
		a := clustermesh.TunnelAddr(o, false)
		if b, is := at[a]; is {
			return b, o, netip.PrefixFrom(a, 32)
		}
	}
	t.Fatal("no two names have one hash")
	return b, c, p
}

// TestTunnelAddrTaken: of two nodes whose names have one hash, the one that was there first keeps the address,
// whichever name is lower; in a first plan neither gets it. Both are told, and both have their other prefixes.
func TestTunnelAddrTaken(t *testing.T) {
	b, c, addr := sameHash(t)
	join := func(s *clustermesh.State, o clustermesh.Origin) {
		n := s.Records.Get(origin(string(o.Cluster), "n1"))
		s.Records = s.Records.Without(n.Origin)
		node := *n.Content.Node
		node.Name, node.Prefixes, node.Inside = o.Node, append(slices.Clone(node.Prefixes), addr), addr.Addr()
		n.Origin, n.Content = o, clustermesh.Content{Node: &node}
		s.Records = s.Records.With(o, n)
	}
	for _, order := range [][2]clustermesh.Origin{{b, c}, {c, b}} {
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
		s := clusterset()
		join(&s, order[0])
		p.plan(s)
		join(&s, order[1])
		r := p.plan(s)
		if got, _ := entered(r, addr.String()); got != order[0].String() {
			t.Errorf("after %s came %s: %s is %q's", order[0], order[1], addr, got)
		}
		said := fmt.Sprint(r.Problems)
		if len(r.Problems) != 2 || !strings.Contains(said, "node "+order[0].String()+": prefixes: ") || !strings.Contains(said, "node "+order[1].String()+": prefixes: ") {
			t.Errorf("problems %v", r.Problems)
		}
		first := planFor(s)
		if got, _ := entered(first, addr.String()); got != "" || len(first.Problems) != 2 || len(first.Desired.Peers) != 4 {
			t.Errorf("in a first plan it is %q's: %v", got, first.Problems)
		}
	}
}
