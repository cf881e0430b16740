package plan_test

import (
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

func guest(name string, k byte, ranges ...string) plan.Guest {
	g := plan.Guest{Name: name, Key: key.Public{99, k}}
	for _, r := range ranges {
		g.Range = append(g.Range, netip.MustParsePrefix(r))
	}
	return g
}

// planWith plans for a/n1 with guests.
func planWith(s clustermesh.State, mesh bool, guests ...plan.Guest) plan.Result {
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: mesh})
	p.Host = plan.Host{Addrs: []netip.Addr{netip.MustParseAddr("192.168.1.5")}, Connected: []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24")}}
	p.Remotes = []plan.Remote{{Cluster: "b", Range: netip.MustParsePrefix("10.2.0.0/16")}}
	p.Guests = guests
	return p.plan(s)
}

// TestGuests: a machine outside every cluster is a peer with its own range and a route, and the guard
// knows what it may call. The clusterset stays as it was.
func TestGuests(t *testing.T) {
	laptop := guest("laptop", 1, "10.99.0.2/32")
	laptop.To = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	elsewhere := guest("other", 2, "10.99.0.3/32")
	elsewhere.Nodes = []clustermesh.NodeName{"n2"}
	without, with := planWith(clusterset(), true), planWith(clusterset(), true, laptop, elsewhere)
	if len(with.Problems) > 0 || len(with.Desired.Peers) != len(without.Desired.Peers)+1 {
		t.Fatalf("problems %v, peers %v", with.Problems, with.Desired.Peers)
	}
	peer := with.Desired.Peers[len(with.Desired.Peers)-1]
	if peer.Name != "peer/laptop" || peer.Key != laptop.Key || peer.Underlay.IsValid() || len(peer.AllowedIPs) != 1 || peer.AllowedIPs[0] != laptop.Range[0] {
		t.Errorf("the peer is %+v", peer)
	}
	if got := with.Desired.Sources.Guests; len(got) != 1 || !got[0].Equal(datapath.Guest{Name: "laptop", Range: laptop.Range, To: laptop.To}) {
		t.Errorf("the guard has %+v", got)
	}
	routed := false
	for _, r := range with.Desired.Routes {
		routed = routed || r.Dst == laptop.Range[0] && !r.Unreachable
	}
	if !routed {
		t.Errorf("no route leads to the guest: %v", with.Desired.Routes)
	}
	if len(with.Mesh.Guests) != 2 || with.Mesh.Guests[0].Elsewhere || !with.Mesh.Guests[1].Elsewhere {
		t.Errorf("guests %+v", with.Mesh.Guests)
	}
}

// TestGuestComesAndGoes: a plan with a past follows the guests.
func TestGuestComesAndGoes(t *testing.T) {
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	s := clusterset()
	before := peersOf(p.plan(s))
	p.Guests = []plan.Guest{guest("laptop", 1, "10.99.0.2/32")}
	if got := peersOf(p.plan(s)); got != before+" peer/laptop" {
		t.Errorf("after it came: %s", got)
	}
	p.Guests = nil
	r := p.plan(s)
	if got := peersOf(r); got != before || len(r.Desired.Sources.Guests) > 0 || len(r.Mesh.Guests) > 0 {
		t.Errorf("after it went: %s, %+v", got, r.Mesh.Guests)
	}
}

// TestGuestsRefused: a guest that would take anything from the clusterset or this machine is refused
// as a whole, with one Problem, and every other peer is in force.
func TestGuestsRefused(t *testing.T) {
	nodeKey := guest("x", 1, "10.99.0.2/32")
	nodeKey.Key = clusterset().Records.Get(clustermesh.Origin{Cluster: "b", Node: "n1"}).Content.Node.PublicKey
	ownKey := nodeKey
	ownKey.Key = clusterset().Records.Get(clustermesh.Origin{Cluster: "a", Node: "n1"}).Content.Node.PublicKey
	for _, tc := range []struct {
		name string
		g    plan.Guest
		says string
	}{
		{"a pod range of another cluster", guest("x", 1, "10.3.1.0/25"), "10.3.1.0/24 of node c/n1"},
		{"more than one of its own", guest("x", 1, "10.1.2.7/32"), "10.1.2.0/24 of node a/n2"},
		{"what covers a pod range", guest("x", 1, "10.99.0.2/32", "10.3.0.0/16"), "of node c/n1"},
		{"a range pinned for a cluster", guest("x", 1, "10.2.77.0/24"), "pinned for the pods of cluster b"},
		{"ClusterSetIPs", guest("x", 1, "241.1.0.0/24"), "for ClusterSetIPs"},
		{"a node's address", guest("x", 1, "172.31.2.1/32"), "the address of node b/n1"},
		{"an address of this machine", guest("x", 1, "192.168.1.5/32"), "this machine"},
		{"a neighbour of this machine", guest("x", 1, "192.168.1.9/32"), "192.168.1.0/24, a network"},
		{"strait's own addresses", guest("x", 1, "243.1.0.0/24"), "243.0.0.0/8"},
		{"nearly everything", guest("x", 1, "0.0.0.0/1"), "for ClusterSetIPs, 0.0.0.0/1"},
		{"a node's key", nodeKey, "node b/n1"},
		{"this node's key", ownKey, "node a/n1"},
		{"another guest's key", guest("x", 0, "10.99.0.2/32"), "peer first"},
		{"another guest's address", guest("x", 1, "10.98.0.0/16"), "of peer first"},
	} {
		s := clusterset()
		proven := s.Records.Get(origin("b", "n1"))
		proven.KeyProven = true
		s.Records = s.Records.With(origin("b", "n1"), proven)
		r := planWith(s, true, guest("first", 0, "10.98.0.1/32"), tc.g)
		if got := peersOf(r); got != "b/n1 b/n2 c/n1 c/n2 peer/first" || len(r.Desired.Sources.Guests) != 1 {
			t.Errorf("%s: peers %s", tc.name, got)
		}
		says := tc.says
		if tc.name == "nearly everything" {
			says = "overlaps"
		}
		if len(r.Problems) != 1 || r.Problems[0].Code != problem.PeerPinRefused || !strings.Contains(r.Problems[0].Message, says) {
			t.Errorf("%s: problems %v, want one with %q", tc.name, r.Problems, says)
		}
	}
	if r := planWith(clusterset(), false, guest("x", 1, "10.99.0.2/32")); len(r.Desired.Peers) > 0 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "mesh is off") {
		t.Errorf("without a mesh: %v, %v", r.Desired.Peers, r.Problems)
	}
	bare := clusterset() // without prefixes there is no guard
	edit(&bare, "a", "n1", func(c *clustermesh.Content) { c.Node.Prefixes = nil })
	if r := planWith(bare, true, guest("x", 1, "10.99.0.2/32")); strings.Contains(peersOf(r), "peer/") || len(r.Desired.Sources.Guests) > 0 {
		t.Errorf("without prefixes of its own, the node has the peers %s", peersOf(r))
	}
}

// TestGuestCallsNoClusterSetIP: ClusterSetIPs that no Service holds are for programs on nodes. The
// guest stays, and what works instead is said.
func TestGuestCallsNoClusterSetIP(t *testing.T) {
	g := guest("laptop", 1, "10.99.0.2/32")
	g.To = []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8"), netip.MustParsePrefix("10.3.0.0/16")}
	r := planWith(clusterset(), true, g)
	if got := r.Desired.Sources.Guests; len(got) != 1 || len(got[0].To) != 1 || got[0].To[0] != g.To[1] {
		t.Errorf("the guard has %+v", got)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "kube-proxy") || !strings.Contains(r.Problems[0].Try, "headless") {
		t.Errorf("problems %v", r.Problems)
	}
}

// TestGuestHeld: a node of another cluster that claims a guest's key or addresses takes nothing from it, and
// loses what it claims; also after a restart, by what the device has.
func TestGuestHeld(t *testing.T) {
	laptop := guest("laptop", 1, "10.99.0.2/32")
	for name, steal := range map[string]func(*clustermesh.Node){
		"key":     func(n *clustermesh.Node) { n.PublicKey = laptop.Key },
		"range":   func(n *clustermesh.Node) { n.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/24")} },
		"address": func(n *clustermesh.Node) { n.Addresses = append(n.Addresses, laptop.Range[0].Addr()) },
	} {
		honest, stolen := clusterset(), clusterset()
		edit(&stolen, "b", "n1", func(c *clustermesh.Content) { steal(c.Node) })
		planner := func() *series {
			p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
			p.Guests = []plan.Guest{laptop}
			return p
		}
		last, restarted := planner(), planner()
		var had []plan.Had
		for _, x := range last.plan(honest).Desired.Peers {
			had = append(had, plan.Had{Key: x.Key, Underlay: x.Underlay, AllowedIPs: x.AllowedIPs})
		}
		restarted.Device = had
		want := "b/n2 c/n1 c/n2 peer/laptop"
		if name == "address" { // costs the node nothing, either
			want = "b/n1 " + want
		}
		for how, p := range map[string]*series{"later": last, "after a restart": restarted} {
			if r := p.plan(stolen); peersOf(r) != want {
				t.Errorf("%s, %s: peers %s, problems %v", name, how, peersOf(r), r.Problems)
			}
		}
	}
}

// TestGuestAnew: on a new machine, a key that is pinned for a guest counts more than one that a node claims and
// has not proved.
func TestGuestAnew(t *testing.T) {
	laptop := guest("laptop", 1, "10.99.0.2/32")
	s := clusterset()
	edit(&s, "b", "n1", func(c *clustermesh.Content) { c.Node.PublicKey = laptop.Key })
	if r := planWith(s, true, laptop); peersOf(r) != "b/n2 c/n1 c/n2 peer/laptop" {
		t.Errorf("peers %s, problems %v", peersOf(r), r.Problems)
	}
}
