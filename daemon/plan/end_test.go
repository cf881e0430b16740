package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

func everyNode() (out []plan.Self) {
	for _, c := range []clustermesh.ClusterName{"a", "b", "c"} {
		for _, n := range []clustermesh.NodeName{"n1", "n2"} {
			out = append(out, plan.Self{Cluster: c, Node: n})
		}
	}
	return out
}

func peersOf(r plan.Result) string {
	var names []string
	for _, p := range r.Desired.Peers {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// A key and an underlay address have one owner, the same on every node: who proved that they are its own. If
// none did, no node has them. Each node that lost is a Problem on every node, and everything else is as it was.
func TestPlanOneOwner(t *testing.T) {
	with := func(cluster, node string, f func(*clustermesh.Node)) func(*clustermesh.State) {
		return func(s *clustermesh.State) { edit(s, cluster, node, func(c *clustermesh.Content) { f(c.Node) }) }
	}
	both := func(fs ...func(*clustermesh.State)) func(*clustermesh.State) {
		return func(s *clustermesh.State) {
			for _, f := range fs {
				f(s)
			}
		}
	}
	keyOf := func(k ...byte) func(*clustermesh.Node) {
		return func(n *clustermesh.Node) { n.PublicKey = key.Public{}; copy(n.PublicKey[:], k) }
	}
	at := func(addrs ...string) func(*clustermesh.Node) {
		return func(n *clustermesh.Node) {
			n.Addresses = nil
			for _, a := range addrs {
				n.Addresses = append(n.Addresses, netip.MustParseAddr(a))
			}
		}
	}
	prove := func(cluster, node string) func(*clustermesh.State) {
		return func(s *clustermesh.State) {
			r := s.Records.Get(origin(cluster, node))
			r.KeyProven = true
			s.Records = s.Records.With(r.Origin, r)
		}
	}
	there := func(cluster, node, at string) func(*clustermesh.State) {
		return func(s *clustermesh.State) {
			s.Proven = s.Proven.With(origin(cluster, node), netip.AddrPortFrom(netip.MustParseAddr(at), 7946))
		}
	}
	for _, tc := range []struct {
		name     string
		change   func(*clustermesh.State)
		losers   []string
		problems []string // how they begin
	}{
		{"two remote nodes", with("c", "n1", keyOf(2, 1)), []string{"b/n1", "c/n1"}, []string{
			"node b/n1: publicKey: it has the same WireGuard key as node c/n1, and it is not known whose it is: no tunnel leads to b/n1; give each node a key of its own",
			"node c/n1: publicKey: it has the same WireGuard key as node b/n1, and it is not known whose it is: no tunnel leads to c/n1; give each node a key of its own"}},
		{"one of them proved it", both(with("c", "n1", keyOf(2, 1)), prove("c", "n1")), []string{"b/n1"}, []string{
			"node b/n1: publicKey: it has the WireGuard key of node c/n1, which keeps it: no tunnel leads to b/n1; give each node a key of its own"}},
		{"the other one proved it", both(with("c", "n1", keyOf(2, 1)), prove("b", "n1")), []string{"c/n1"}, []string{"node c/n1: publicKey: it has the WireGuard key of node b/n1"}},
		{"two nodes of one cluster", with("b", "n2", keyOf(2, 1)), []string{"b/n1", "b/n2"}, []string{
			"node b/n1: publicKey: it has the same WireGuard key as node b/n2", "node b/n2: publicKey: it has the same WireGuard key as node b/n1"}},
		{"the own key at a remote node", both(with("b", "n1", keyOf(1, 1)), prove("a", "n1")), []string{"b/n1"}, []string{"node b/n1: publicKey: it has the WireGuard key of node a/n1"}},
		{"a neighbour's key at a remote node", both(with("c", "n2", keyOf(1, 2)), prove("a", "n2")), []string{"c/n2"}, []string{"node c/n2: publicKey: it has the WireGuard key of node a/n2"}},
		{"a dead one loses to its own cluster", both(with("b", "n2", keyOf(2, 1)), kill("b", "n1")), []string{"b/n1"}, []string{"node b/n1: publicKey: it has the WireGuard key of node b/n2"}},
		{"but not what it proved", both(with("b", "n2", keyOf(2, 1)), kill("b", "n1"), prove("b", "n1")), []string{"b/n2"}, []string{"node b/n2: publicKey: it has the WireGuard key of node b/n1"}},
		{"and not to another one", both(with("c", "n1", keyOf(2, 1)), kill("b", "n1")), []string{"b/n1", "c/n1"}, []string{
			"node b/n1: publicKey: it has the same WireGuard key as node c/n1", "node c/n1: publicKey: it has the same WireGuard key as node b/n1"}},
		{"one underlay address", with("c", "n1", at("172.31.2.2")), []string{"b/n2", "c/n1"}, []string{
			"node b/n2: addresses: node c/n1 has the underlay address 172.31.2.2:51820 too, and it is not known whose it is: no tunnel leads to b/n2; give each node an address",
			"node c/n1: addresses: node b/n2 has the underlay address 172.31.2.2:51820 too, and it is not known whose it is: no tunnel leads to c/n1; give each node an address"}},
		{"one underlay address, where its owner was met", both(with("c", "n1", at("172.31.2.2")), there("b", "n2", "172.31.2.2")), []string{"c/n1"}, []string{
			"node c/n1: addresses: 172.31.2.2:51820 is the underlay address of node b/n2, which keeps it: no tunnel leads to c/n1; give each node an address"}},
		{"who was met elsewhere has proved nothing", both(with("c", "n1", at("172.31.2.2")), there("b", "n2", "172.31.2.2"), there("c", "n1", "172.31.3.1")), []string{"c/n1"}, []string{
			"node c/n1: addresses: 172.31.2.2:51820 is the underlay address of node b/n2"}},
		{"who would use it first has it", with("c", "n1", at("172.31.3.1", "172.31.2.2")), nil, nil},
		{"an own address at a remote node", both(with("b", "n1", at("172.31.1.1")), there("a", "n1", "172.31.1.1")), []string{"b/n1"}, []string{
			"node b/n1: addresses: 172.31.1.1:51820 is the underlay address of node a/n1"}},
		{"one address, two ports", with("c", "n1", func(n *clustermesh.Node) { at("172.31.2.2")(n); n.WireGuardPort = 51821 }), nil, nil},
		{"no address", with("b", "n1", at()), []string{"b/n1"}, []string{"node b/n1: addresses: it has no address that other machines can reach: no tunnel leads to b/n1; "}},
		{"no port", with("b", "n1", func(n *clustermesh.Node) { n.WireGuardPort = 0 }), []string{"b/n1"}, []string{"node b/n1: wireguardPort: it has a WireGuard key but no port"}},
		{"no prefix", with("b", "n1", func(n *clustermesh.Node) { n.Prefixes = nil }), []string{"b/n1"}, []string{"node b/n1: prefixes: it has no prefix of pods"}},
		{"a prefix of ClusterSetIPs", with("b", "n1", func(n *clustermesh.Node) { n.Prefixes = []netip.Prefix{cidr} }), []string{"b/n1"}, []string{
			"node b/n1: prefixes: 241.0.0.0/8 overlaps 241.0.0.0/8, which is for ClusterSetIPs"}},
		{"no mesh there", with("b", "n1", keyOf()), []string{"b/n1"}, nil},
	} {
		s := clusterset()
		tc.change(&s)
		for _, self := range everyNode() {
			r := once(s, self, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
			var want []string
			for _, n := range everyNode() {
				same := n != self && s.Records.Get(n.Origin()).Content.Node.PublicKey == s.Records.Get(self.Origin()).Content.Node.PublicKey
				name := n.Origin().String()
				if n.Cluster != self.Cluster && !slices.Contains(tc.losers, name) && !same { // no device takes its own key
					want = append(want, name)
				}
			}
			if got := peersOf(r); got != strings.Join(want, " ") {
				t.Errorf("%s: %s has the peers %s, want %s", tc.name, self.Origin(), got, want)
			}
			if told := warnings(r); (len(told) == 1) != strings.Contains(fmt.Sprint(losses(r)), "which keeps it") {
				t.Errorf("%s: on %s the one that keeps it is told %v", tc.name, self.Origin(), told)
			}
			if !slices.EqualFunc(losses(r), tc.problems, func(p clustermesh.Problem, want string) bool { return strings.HasPrefix(p.String(), want) }) {
				t.Errorf("%s: on %s the Problems are %v, want %q", tc.name, self.Origin(), r.Problems, tc.problems)
			}
		}
	}
}

// TestNextAddress: a node that does not have its first address to itself is reached at the next.
func TestNextAddress(t *testing.T) {
	s := clusterset()
	s.Proven = s.Proven.With(origin("b", "n2"), netip.MustParseAddrPort("172.31.2.2:7946"))
	edit(&s, "c", "n1", func(c *clustermesh.Content) {
		c.Node.Addresses = []netip.Addr{netip.MustParseAddr("172.31.2.2"), netip.MustParseAddr("172.31.3.1")}
	})
	r := planFor(s)
	for _, p := range r.Desired.Peers {
		if p.Name == "c/n1" && p.Underlay != netip.MustParseAddrPort("172.31.3.1:51820") || p.Name == "b/n2" && p.Underlay != netip.MustParseAddrPort("172.31.2.2:51820") {
			t.Errorf("peer %+v", p)
		}
	}
	if len(r.Desired.Peers) != 4 || len(losses(r)) > 0 || len(warnings(r)) != 1 {
		t.Errorf("peers %s, problems %v", peersOf(r), r.Problems)
	}
}

// kill makes its cluster, and another, say that a machine is dead.
func kill(cluster, node string) func(*clustermesh.State) {
	return func(s *clustermesh.State) {
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
		s.Contacts = s.Contacts.With(o, clustermesh.Silent)
		for w := range s.Records.All() {
			if w.Node != "" && w != o {
				edit(s, string(w.Cluster), string(w.Node), func(c *clustermesh.Content) {
					c.Silent = append(c.Silent, clustermesh.Silence{Origin: o, Epoch: 1})
				})
			}
		}
	}
}

// Who has a key does not change when a daemon restarts or is not heard for a while.
func TestPlanOwnerStays(t *testing.T) {
	s := clusterset()
	edit(&s, "c", "n1", func(c *clustermesh.Content) { c.Node.PublicKey = key.Public{2, 1} })
	owner := s.Records.Get(origin("c", "n1"))
	owner.KeyProven = true
	s.Records = s.Records.With(owner.Origin, owner)
	want := peersOf(planFor(s))
	if want != "b/n2 c/n1 c/n2" {
		t.Fatalf("peers %s", want)
	}
	for _, o := range []clustermesh.Origin{{Cluster: "b", Node: "n1"}, {Cluster: "c", Node: "n1"}} {
		for _, contact := range []clustermesh.Contact{clustermesh.Held, clustermesh.Silent, clustermesh.Quiet, clustermesh.Alive} {
			s.Contacts = s.Contacts.With(o, contact)
			r := s.Records.Get(o)
			r.Stamp.Epoch++
			s.Records = s.Records.With(o, r)
			if got := peersOf(planFor(s)); got != want {
				t.Errorf("%s in a new life is %s: peers %s, were %s", o, contact, got, want)
			}
		}
	}
}

// drawNode is what a node may come to say of itself; few values, so that they meet.
func drawNode(rt *rapid.T, name clustermesh.NodeName) *clustermesh.Node {
	n := &clustermesh.Node{
		Name: name, PublicKey: key.Public{rapid.ByteMax(3).Draw(rt, "key")},
		WireGuardPort: rapid.SampledFrom([]uint16{0, 51820, 51820, 51821}).Draw(rt, "port"),
	}
	for _, a := range rapid.SliceOfN(rapid.SampledFrom([]string{"172.31.1.1", "172.31.1.2", "2001:db8::1", "127.0.0.1"}), 0, 2).Draw(rt, "addresses") {
		n.Addresses = append(n.Addresses, netip.MustParseAddr(a))
	}
	for _, p := range rapid.SliceOfN(rapid.SampledFrom([]string{
		"10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.7/32", "10.2.0.0/16", "fd00::/48", "fd00::1/128", "0.0.0.0/0", "::/0", "241.1.0.0/16", "10.1.1.9/24",
	}), 0, 4).Draw(rt, "prefixes") {
		n.Prefixes = append(n.Prefixes, netip.MustParsePrefix(p))
	}
	if len(n.Prefixes) > 0 {
		n.Inside = n.Prefixes[0].Addr()
	}
	return n
}

// Whatever nodes say of themselves, the plan of none contradicts itself: no key, underlay address,
// allowed IP or route twice, and the guard of the device has nothing to say.
func TestPlanNeverContradictsItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := clustermesh.State{Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{}}
		for range rapid.IntRange(1, 8).Draw(rt, "records") {
			o := drawOrigin(rt)
			if o.Node == "" {
				continue
			}
			content := clustermesh.Content{Node: drawNode(rt, o.Node)}
			if rapid.Bool().Draw(rt, "claims") {
				content.Silent = []clustermesh.Silence{{Origin: mortal, Epoch: 9}}
			}
			usable, _ := record.Usable(o, content) // as every replica lets it in
			s.Records = s.Records.With(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: usable})
		}
		for _, self := range everyNode() {
			d := once(s, self, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true}).Desired
			var own key.Public
			if n := s.Records.Get(self.Origin()).Content.Node; n != nil {
				own = n.PublicKey
			}
			sound, problems := datapath.SoundPeers(d.Peers, own)
			if len(problems) > 0 || !slices.EqualFunc(sound, d.Peers, datapath.Peer.Equal) {
				rt.Fatalf("%s: the guard says %v, and leaves %v of %v", self.Origin(), problems, sound, d.Peers)
			}
			seen := map[any]string{}
			once := func(what any, by string) {
				if other, twice := seen[what]; twice {
					rt.Fatalf("%s: both %s and %s have %v", self.Origin(), other, by, what)
				}
				seen[what] = by
			}
			for _, p := range d.Peers {
				once(p.Key, p.Name)
				once(p.Underlay, p.Name)
				if !p.Underlay.IsValid() || p.Underlay.Port() == 0 || len(p.AllowedIPs) == 0 {
					rt.Fatalf("%s: half a peer: %+v", self.Origin(), p)
				}
			}
			for _, r := range d.Routes {
				once(r.Dst, "a route")
				if !r.Unreachable && (r.Dst.Bits() == 0 || r.Dst != r.Dst.Masked() || r.Src.IsValid() && r.Src.Is4() != r.Dst.Addr().Is4()) {
					rt.Fatalf("%s: a route that cannot be: %+v", self.Origin(), r)
				}
			}
		}
	})
}
