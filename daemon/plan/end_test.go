package plan_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
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

// A key and an underlay address have one owner, the same on every node; the other is a Problem on
// every node, and everything else is as it was.
func TestPlanOneOwner(t *testing.T) {
	with := func(cluster, node string, f func(*clustermesh.Node)) func(clustermesh.State) {
		return func(s clustermesh.State) { edit(s, cluster, node, func(c *clustermesh.Content) { f(c.Node) }) }
	}
	both := func(fs ...func(clustermesh.State)) func(clustermesh.State) {
		return func(s clustermesh.State) {
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
	for _, tc := range []struct {
		name    string
		change  func(clustermesh.State)
		loser   string
		problem string // how it begins
	}{
		{"two remote nodes", with("c", "n1", keyOf(2, 1)), "c/n1",
			"node c/n1: publicKey: it has the WireGuard key of node b/n1, which keeps it: no tunnel leads to c/n1; give each node a key of its own"},
		{"two nodes of one cluster", with("b", "n2", keyOf(2, 1)), "b/n2", "node b/n2: publicKey: it has the WireGuard key of node b/n1"},
		{"the own key at a remote node", with("b", "n1", keyOf(1, 1)), "b/n1", "node b/n1: publicKey: it has the WireGuard key of node a/n1"},
		{"a neighbour's key at a remote node", with("c", "n2", keyOf(1, 2)), "c/n2", "node c/n2: publicKey: it has the WireGuard key of node a/n2"},
		{"a dead one loses", both(with("c", "n1", keyOf(2, 1)), kill("b", "n1")), "b/n1", "node b/n1: publicKey: it has the WireGuard key of node c/n1"},
		{"one underlay address", with("c", "n1", at("172.31.2.2")), "c/n1",
			"node c/n1: addresses: 172.31.2.2:51820 is the underlay address of node b/n2, which keeps it: no tunnel leads to c/n1; give each node an address"},
		{"an own address at a remote node", with("b", "n1", at("172.31.1.1")), "b/n1", "node b/n1: addresses: 172.31.1.1:51820 is the underlay address of node a/n1"},
		{"one address, two ports", with("c", "n1", func(n *clustermesh.Node) { at("172.31.2.2")(n); n.WireGuardPort = 51821 }), "", ""},
		{"no address", with("b", "n1", at()), "b/n1", "node b/n1: addresses: it has no address that other machines can reach: no tunnel leads to b/n1; "},
		{"no port", with("b", "n1", func(n *clustermesh.Node) { n.WireGuardPort = 0 }), "b/n1", "node b/n1: wireguardPort: it has a WireGuard key but no port"},
		{"no prefix", with("b", "n1", func(n *clustermesh.Node) { n.Prefixes = nil }), "b/n1", "node b/n1: prefixes: it has no prefix of pods"},
		{"a prefix of ClusterSetIPs", with("b", "n1", func(n *clustermesh.Node) { n.Prefixes = []netip.Prefix{cidr} }), "b/n1",
			"node b/n1: prefixes: 241.0.0.0/8 overlaps 241.0.0.0/8, which is for ClusterSetIPs"},
		{"no mesh there", with("b", "n1", keyOf()), "b/n1", ""},
	} {
		s := clusterset()
		tc.change(s)
		for _, self := range everyNode() {
			r := plan.Plan(s, self, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
			var want []string
			for _, n := range everyNode() {
				same := n != self && s.Records[n.Origin()].Content.Node.PublicKey == s.Records[self.Origin()].Content.Node.PublicKey
				if name := n.Origin().String(); n.Cluster != self.Cluster && name != tc.loser && !same { // no device takes its own key
					want = append(want, name)
				}
			}
			if got := peersOf(r); got != strings.Join(want, " ") {
				t.Errorf("%s: %s has the peers %s, want %s", tc.name, self.Origin(), got, want)
			}
			if tc.problem == "" && len(r.Problems) == 0 {
				continue
			}
			if len(r.Problems) != 1 || tc.problem == "" || !strings.HasPrefix(r.Problems[0].String(), tc.problem) {
				t.Errorf("%s: on %s the Problems are %v, want %q", tc.name, self.Origin(), r.Problems, tc.problem)
			}
		}
	}
}

// kill makes its cluster, and another, say that a machine is dead.
func kill(cluster, node string) func(clustermesh.State) {
	return func(s clustermesh.State) {
		o := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
		s.Contacts[o] = clustermesh.Silent
		for w := range s.Records {
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
	edit(s, "c", "n1", func(c *clustermesh.Content) { c.Node.PublicKey = key.Public{2, 1} })
	want := peersOf(planFor(s))
	for _, o := range []clustermesh.Origin{{Cluster: "b", Node: "n1"}, {Cluster: "c", Node: "n1"}} {
		for _, contact := range []clustermesh.Contact{clustermesh.Held, clustermesh.Silent, clustermesh.Quiet, clustermesh.Alive} {
			s.Contacts[o] = contact
			r := s.Records[o]
			r.Stamp.Epoch++
			s.Records[o] = r
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
		s := clustermesh.State{Records: map[clustermesh.Origin]clustermesh.Record{}, Contacts: map[clustermesh.Origin]clustermesh.Contact{}}
		for range rapid.IntRange(1, 8).Draw(rt, "records") {
			o := drawOrigin(rt)
			if o.Node == "" {
				continue
			}
			content := clustermesh.Content{Node: drawNode(rt, o.Node)}
			if rapid.Bool().Draw(rt, "claims") {
				content.Silent = []clustermesh.Silence{{Origin: mortal, Epoch: 9}}
			}
			usable, _ := clustermesh.Usable(o, content) // as every replica lets it in
			s.Records[o] = clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: usable}
		}
		for _, self := range everyNode() {
			d := plan.Plan(s, self, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true}).Desired
			var own key.Public
			if n := s.Records[self.Origin()].Content.Node; n != nil {
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
