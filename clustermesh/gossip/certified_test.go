package gossip

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// guardOf returns the guard of a machine of west that has the root.
func guardOf(o clustermesh.Origin) *guard {
	return newGuard(signing(config(o), pinned("west", "east")).Authority, o, slog.New(slog.DiscardHandler))
}

// TestClaims: what nodes of this cluster are stated to have on the underlay is no other's endpoint, inside the
// ranges of its own machines, and only as long as it is stated.
func TestClaims(t *testing.T) {
	self, liar := node("west", "n1"), node("west", "n2")
	g := guardOf(self)
	g.held = heldBy{o: liar}
	says := func(texts ...string) authority.Statement {
		s := authority.Statement{Cluster: "west", Node: "n2"}
		for _, a := range texts {
			s.Addresses = append(s.Addresses, netip.MustParseAddr(a))
		}
		g.proven[liar] = proof{statement: statement{Statement: s}}
		return s
	}
	own, pod, elsewhere := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("10.1.1.7"), netip.MustParseAddr("203.0.113.7")
	g.claim(says(own.String(), pod.String(), elsewhere.String()))
	if !g.news || !g.receiver.Machines[own] || g.receiver.Machines[pod] || g.receiver.Machines[elsewhere] {
		t.Errorf("claimed: %v", g.receiver.Machines)
	}
	east := node("east", "n1")
	c := placed(east, 1, "1")
	c.Node.Addresses = []netip.Addr{own}
	c.Endpoints = append(c.Endpoints, c.Endpoints[0])
	c.Endpoints[1].Addr = own
	got := authority.Admit(g.receiver, g.Pins["east"], authority.Statement{Addresses: c.Node.Addresses, Prefixes: c.Node.Prefixes},
		clustermesh.Record{Origin: east, Content: c}).Content
	if len(got.Node.Addresses) != 1 || len(got.Node.Prefixes) != 1 || len(got.Endpoints) != 1 {
		t.Errorf("of east there is left %+v", got)
	}
	g.news = false
	if g.reclaim(); g.news {
		t.Error("nothing changed, and it is news")
	}
	says("192.0.2.8")
	if g.reclaim(); !g.news || g.receiver.Machines[own] || !g.receiver.Machines[netip.MustParseAddr("192.0.2.8")] {
		t.Errorf("after the truth: %v", g.receiver.Machines)
	}
	g.held = nothing{}
	if g.reclaim(); len(g.receiver.Machines) > 0 {
		t.Errorf("after the node left: %v", g.receiver.Machines)
	}
}

// TestStatesOfItself: a machine with the root states of itself what its cluster's objects allow, no more; and
// nothing while it has not read them.
func TestStatesOfItself(t *testing.T) {
	self, now := node("west", "n1"), time.Now()
	g := guardOf(self)
	g.attests = true
	n := placed(self, 0, "1").Node
	own := n.Prefixes[0]
	theirs := netip.MustParsePrefix("10.0.2.128/25")
	n.Prefixes = append(slices.Clone(n.Prefixes), theirs)
	if g.state(n, now) {
		t.Error("it states what it cannot know")
	}
	g.objects = &authority.Objects{Nodes: []authority.Holder{
		{Name: "n1", Addresses: n.Addresses, PodCIDRs: []netip.Prefix{own}, Annotated: n.Prefixes},
		{Name: "n2", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.2.0/24")}},
	}}
	if !g.state(n, now) || !slices.Equal(g.stated.Prefixes, []netip.Prefix{own}) || !slices.Equal(g.stated.Addresses, n.Addresses) {
		t.Errorf("it states %+v", g.stated.Statement)
	}
	if len(g.left) != 1 || !strings.Contains(g.left[0].Message, "node west/n2") {
		t.Errorf("and says %v", g.left)
	}
	if g.outdated(now) {
		t.Error("the statement is outdated at once")
	}
	g.objects.Nodes[0].Annotated = nil
	g.objects.Nodes = append(g.objects.Nodes, authority.Holder{Name: "n3", PodCIDRs: []netip.Prefix{own}})
	g.stated.Statement.Prefixes = append(g.stated.Prefixes, theirs) // as an earlier version stated it
	if !g.outdated(now) {
		t.Error("a statement that says too much is not outdated")
	}
	if g.state(n, now); !slices.Equal(g.stated.Prefixes, []netip.Prefix{own}) || len(g.left) != 1 {
		t.Errorf("it states %+v, and says %v", g.stated.Statement, g.left)
	}
}

// TestGrantsCount: what a machine signed for one node counts for the next that asks, before the first shows it.
func TestGrantsCount(t *testing.T) {
	g := guardOf(node("west", "n1"))
	free := []netip.Prefix{netip.MustParsePrefix("10.0.9.0/24")}
	objects := authority.Objects{Nodes: []authority.Holder{{Name: "n2", Annotated: free}, {Name: "n3", Annotated: free}}}
	ask := func(name clustermesh.NodeName) authority.Statement {
		want := authority.Statement{Cluster: "west", Node: name, Prefixes: free}
		s, _ := authority.Certify(want, g.known(want, objects, time.Now()), time.Now())
		g.grant(s)
		return s
	}
	for range 2 {
		if first, second := ask("n3"), ask("n2"); len(first.Prefixes) != 1 || len(second.Prefixes) != 0 {
			t.Errorf("the first has %v, the second %v", first.Prefixes, second.Prefixes)
		}
	}
}
