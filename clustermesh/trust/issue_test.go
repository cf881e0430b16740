package trust

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// storeOf returns the store of a machine of west that has the root.
func storeOf(o clustermesh.Origin) *Store {
	return New(signing(o, pinned("west", "east")), o)
}

// TestClaims: what nodes of this cluster are stated to have on the underlay is no other's endpoint, inside the
// ranges of its own machines, and only as long as it is stated.
func TestClaims(t *testing.T) {
	self, liar := node("west", "n1"), node("west", "n2")
	g := storeOf(self)
	g.records = heldBy{o: liar}
	says := func(texts ...string) authority.Statement {
		s := authority.Statement{Cluster: "west", Node: "n2"}
		for _, a := range texts {
			s.Addresses = append(s.Addresses, netip.MustParseAddr(a))
		}
		g.verified.set(liar, verification{Signed: Signed{Statement: s}})
		return s
	}
	own, pod, elsewhere := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("10.1.1.7"), netip.MustParseAddr("203.0.113.7")
	g.addMachines(says(own.String(), pod.String(), elsewhere.String()))
	if !g.stale || !g.receiver.Machines[own] || g.receiver.Machines[pod] || g.receiver.Machines[elsewhere] {
		t.Errorf("claimed: %v", g.receiver.Machines)
	}
	east := node("east", "n1")
	c := placed(east, 1, "1")
	c.Node.Addresses = []netip.Addr{own}
	c.Endpoints = append(c.Endpoints, c.Endpoints[0])
	c.Endpoints[1].Addr = own
	got := authority.Admit(g.receiver, g.pins["east"], authority.Statement{Addresses: c.Node.Addresses, Prefixes: c.Node.Prefixes},
		clustermesh.Record{Origin: east, Content: c}).Content
	if len(got.Node.Addresses) != 1 || len(got.Node.Prefixes) != 1 || len(got.Endpoints) != 1 {
		t.Errorf("of east there is left %+v", got)
	}
	g.stale = false
	if g.UpdateMachines(); g.stale {
		t.Error("none changed, and it is news")
	}
	says("192.0.2.8")
	if g.UpdateMachines(); !g.stale || g.receiver.Machines[own] || !g.receiver.Machines[netip.MustParseAddr("192.0.2.8")] {
		t.Errorf("after the truth: %v", g.receiver.Machines)
	}
	g.records = none{}
	if g.UpdateMachines(); len(g.receiver.Machines) > 0 {
		t.Errorf("after the node left: %v", g.receiver.Machines)
	}
}

// TestStatesOfItself: a machine with the root states of itself what its cluster's objects allow, no more; and
// none while it has not read them.
func TestStatesOfItself(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	g := storeOf(self)
	g.checks = true
	n := placed(self, 0, "1").Node
	own := n.Prefixes[0]
	theirs := netip.MustParsePrefix("10.0.2.128/25")
	n.Prefixes = append(slices.Clone(n.Prefixes), theirs)
	if g.update(t, n, now) {
		t.Error("it states what it cannot know")
	}
	g.objects = &authority.Objects{Nodes: []authority.Holder{
		{Name: "n1", Addresses: n.Addresses, PodCIDRs: []netip.Prefix{own}, Annotated: n.Prefixes},
		{Name: "n2", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.2.0/24")}},
	}}
	if !g.update(t, n, now) || !slices.Equal(g.current.Prefixes, []netip.Prefix{own}) || !slices.Equal(g.current.Addresses, n.Addresses) {
		t.Errorf("it states %+v", g.current.Statement)
	}
	if len(g.withheld) != 1 || !strings.Contains(g.withheld[0].Message, "node west/n2") {
		t.Errorf("and says %v", g.withheld)
	}
	if g.outdated(now) {
		t.Error("the statement is outdated at once")
	}
	g.objects.Nodes[0].Annotated = nil
	g.objects.Nodes = append(g.objects.Nodes, authority.Holder{Name: "n3", PodCIDRs: []netip.Prefix{own}})
	g.current.Statement.Prefixes = append(g.current.Prefixes, theirs) // as an earlier version stated it
	if !g.outdated(now) {
		t.Error("a statement that says too much is not outdated")
	}
	if g.update(t, n, now); !slices.Equal(g.current.Prefixes, []netip.Prefix{own}) || len(g.withheld) != 1 {
		t.Errorf("it states %+v, and says %v", g.current.Statement, g.withheld)
	}
}

// TestGrantsCount: what a machine signed for one node counts for the next that asks, before the first shows it.
func TestGrantsCount(t *testing.T) {
	g := storeOf(node("west", "n1"))
	free := []netip.Prefix{netip.MustParsePrefix("10.0.9.0/24")}
	objects := authority.Objects{Nodes: []authority.Holder{{Name: "n2", Annotated: free}, {Name: "n3", Annotated: free}}}
	ask := func(name clustermesh.NodeName) authority.Statement {
		want := authority.Statement{Cluster: "west", Node: name, Prefixes: free}
		s, _ := authority.Certify(want, g.Known(want, objects, time.Now()), time.Now())
		g.AddIssued(s)
		return s
	}
	for range 2 {
		if first, second := ask("n3"), ask("n2"); len(first.Prefixes) != 1 || len(second.Prefixes) != 0 {
			t.Errorf("the first has %v, the second %v", first.Prefixes, second.Prefixes)
		}
	}
}
