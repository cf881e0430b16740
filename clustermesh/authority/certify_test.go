package authority

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// ownPins are those of cluster east, as its signer has them.
func ownPins() Pins {
	return Pins{
		"east": {Cluster: "east", Pods: prefixes("10.1.0.0/16", "10.96.0.0/16", "fd00:1::/48"), Nodes: prefixes("192.0.2.0/24", "fd00:99::/64")},
		"west": {Cluster: "west", Pods: prefixes("10.2.0.0/16", "fd00:2::/48"), Nodes: prefixes("192.0.2.0/24", "198.51.100.0/24")},
	}
}

// stating returns a node with what was stated of it.
func stating(h Holder, addresses []netip.Addr, ps []netip.Prefix) Holder {
	h.Stated = Statement{Cluster: "east", Node: h.Name, Addresses: addresses, Prefixes: ps, Serial: 1}
	return h
}

// honestNode is n2 as its objects and its statement have it.
func honestNode() Holder {
	h := Holder{Name: "n2", Addresses: addrs("192.0.2.2", "fd00:99::2"), PodCIDRs: prefixes("10.1.2.0/24", "fd00:1:0:2::/64"), Entry: prefixes("10.96.0.0/16")}
	return stating(h, h.Addresses, slices.Concat(h.PodCIDRs, h.Entry))
}

// TestCertify: of what a node n1 wants, its cluster states what Kubernetes or an operator attests, and what
// no other node has. The rest is reported, and names the other node.
func TestCertify(t *testing.T) {
	plain := Holder{Name: "n1", Addresses: addrs("192.0.2.1"), PodCIDRs: prefixes("10.1.1.0/24")}
	with := func(change func(*Holder)) Holder {
		h := plain
		change(&h)
		return h
	}
	fromBefore := stating(plain, addrs("192.0.2.1", "192.0.2.2", "10.2.1.7"), prefixes("10.1.1.0/24", "10.1.2.0/25", "10.96.3.4/32"))
	annotatedNode := func(name clustermesh.NodeName, text string) Holder {
		return Holder{Name: name, PodCIDRs: prefixes("10.1.8.0/24"), Annotated: prefixes(text)}
	}
	for _, c := range []struct {
		what      string
		node      Holder
		others    []Holder // besides n2
		flat      bool     // machines and pods share a network
		addresses string
		prefixes  string
		want      string
		problems  []string
	}{
		{what: "its own", node: plain, addresses: "192.0.2.1", prefixes: "10.1.1.0/24 10.1.1.0/25 10.1.3.7/32", want: "192.0.2.1 10.1.1.0/24 10.1.1.0/25 10.1.3.7/32"},
		{what: "another's pod CIDR, nested, wider, equal, one pod", node: plain, prefixes: "10.1.2.0/24 10.1.2.128/25 10.1.0.0/16 10.1.2.0/23 10.1.2.7/32 fd00:1:0:2::/64 fd00:1:0:2::7/128 fd00:1::/49",
			problems: []string{"10.1.2.0/24", "n2", "with 7 more"}},
		{what: "the same by annotation", node: with(func(h *Holder) { h.Annotated = prefixes("10.1.2.0/24", "10.1.2.0/25", "10.1.0.0/16") }), prefixes: "10.1.2.0/24 10.1.2.0/25 10.1.0.0/16",
			problems: []string{"STR2320", "node east/n1", "node east/n2, which keeps it"}},
		{what: "outside its own pin, and in another's", node: with(func(h *Holder) { h.Annotated = prefixes("8.8.8.0/24", "10.2.1.0/24") }), prefixes: "8.8.8.0/24 10.2.1.0/24",
			problems: []string{"STR2304", "neither in its podCIDRs nor in the pinned pod ranges"}},
		{what: "a pod CIDR outside its pin", node: with(func(h *Holder) { h.PodCIDRs = prefixes("10.7.1.0/24") }), prefixes: "10.7.1.0/24", want: "10.7.1.0/24"},
		{what: "a pod CIDR in another's pin", node: with(func(h *Holder) { h.PodCIDRs = prefixes("10.2.1.0/24") }), prefixes: "10.2.1.0/24", problems: []string{"pinned ranges of cluster west"}},
		{what: "another's pod CIDR as its own", node: with(func(h *Holder) { h.PodCIDRs = prefixes("10.1.2.0/25") }), prefixes: "10.1.2.0/25", problems: []string{"n2"}},
		{what: "ranges of strait's own", node: plain, prefixes: "241.0.0.0/16 " + clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "east", Node: "n2"}, false).String() + "/32", problems: []string{"strait's own"}},
		{what: "a range that covers another's address", node: with(func(h *Holder) { h.Annotated = prefixes("192.0.2.0/24") }), prefixes: "192.0.2.0/24", problems: []string{"192.0.2.0/24"}},

		{what: "annotated, and stated of another first", node: annotatedNode("n1", "10.1.9.0/24"), prefixes: "10.1.9.0/24",
			others: []Holder{stating(annotatedNode("n0", "10.1.9.0/24"), nil, prefixes("10.1.9.0/24")), annotatedNode("n9", "10.1.9.0/24")}, problems: []string{"n0"}},
		{what: "annotated at both, stated first of it", node: stating(annotatedNode("n1", "10.1.9.0/24"), nil, prefixes("10.1.9.0/24")), prefixes: "10.1.9.0/24",
			others: []Holder{annotatedNode("n0", "10.1.9.0/24")}, want: "10.1.9.0/24"},
		{what: "annotated, and later another's pod CIDR", node: stating(annotatedNode("n1", "10.1.9.0/25"), nil, prefixes("10.1.9.0/25")), prefixes: "10.1.9.0/25",
			others: []Holder{{Name: "n9", PodCIDRs: prefixes("10.1.9.0/24")}}, problems: []string{"n9"}},
		{what: "its pod CIDR, annotated at another before", node: plain, prefixes: "10.1.1.0/24",
			others: []Holder{stating(annotatedNode("n0", "10.1.1.0/25"), nil, prefixes("10.1.1.0/25"))}, want: "10.1.1.0/24"},
		{what: "a network that ignores pod CIDRs", node: stating(annotatedNode("n1", "10.1.9.64/26"), nil, prefixes("10.1.9.64/26")), prefixes: "10.1.9.64/26",
			others: []Holder{stating(Holder{Name: "n9", PodCIDRs: prefixes("10.1.9.0/24")}, nil, prefixes("10.1.7.0/26"))}, want: "10.1.9.64/26"},
		{what: "a block of another's in such a network", node: stating(Holder{Name: "n1", PodCIDRs: prefixes("10.1.9.0/24")}, nil, prefixes("10.1.7.0/26")), prefixes: "10.1.9.64/26",
			others: []Holder{stating(annotatedNode("n9", "10.1.9.64/26"), nil, prefixes("10.1.9.64/26"))}, problems: []string{"n9"}},
		{what: "what another's annotation names", node: plain, prefixes: "10.1.9.7/32", others: []Holder{annotatedNode("n9", "10.1.9.0/24")}, problems: []string{"n9"}},

		{what: "the entry too", node: with(func(h *Holder) { h.Entry = prefixes("10.96.0.0/16") }), prefixes: "10.96.0.0/16", want: "10.96.0.0/16"},
		{what: "the entry to one of the entry's", node: with(func(h *Holder) { h.Entry = prefixes("10.96.3.4/32") }), prefixes: "10.96.3.4/32", problems: []string{"STR2320", "n2"}},
		{what: "it is the entry, and wants one by itself", node: with(func(h *Holder) { h.Entry = prefixes("10.96.0.0/16") }), prefixes: "10.96.3.4/32", problems: []string{"n2"}},
		{what: "the same as pods", node: with(func(h *Holder) { h.Annotated = prefixes("10.96.3.4/32") }), prefixes: "10.96.3.4/32", problems: []string{"n2"}},

		{what: "addresses of another node, of pods, and of no node", node: with(func(h *Holder) {
			h.Addresses = addrs("192.0.2.1", "192.0.2.2", "10.1.2.200", "10.2.1.7", "203.0.113.9", "fd00:99::2")
		}), addresses: "192.0.2.1 192.0.2.2 10.1.2.200 10.2.1.7 203.0.113.9 fd00:99::2 ::ffff:192.0.2.2", want: "192.0.2.1", problems: []string{"n2"}},
		{what: "a new node with its address", node: plain, addresses: "192.0.2.1", others: []Holder{{Name: "n9", Addresses: addrs("192.0.2.1")}}, problems: []string{"n9"}},
		{what: "a node that has it, and another has it too", node: stating(plain, addrs("192.0.2.1"), nil), addresses: "192.0.2.1", others: []Holder{{Name: "n0", Addresses: addrs("192.0.2.1")}}, want: "192.0.2.1"},
		{what: "an address in another's annotated prefix", node: with(func(h *Holder) { h.Addresses = addrs("192.0.2.77") }), addresses: "192.0.2.77",
			others: []Holder{stating(Holder{Name: "n9"}, nil, prefixes("192.0.2.64/26"))}, problems: []string{"n9"}},
		{what: "the address of another cluster's node", node: with(func(h *Holder) { h.Addresses = addrs("192.0.2.200") }), addresses: "192.0.2.200", problems: []string{"node west/n7"}},
		{what: "an address of another's pods, in a flat network", flat: true, node: with(func(h *Holder) { h.Addresses = addrs("10.1.2.200") }), addresses: "10.1.2.200", problems: []string{"n2"}},
		{what: "the same, as an earlier version stated it", flat: true, node: stating(with(func(h *Holder) { h.Addresses = addrs("10.1.5.200") }), addrs("10.1.5.200"), nil), addresses: "10.1.5.200",
			others: []Holder{{Name: "n9", PodCIDRs: prefixes("10.1.5.0/24")}}, problems: []string{"n9"}},
		{what: "its own address among pods, in a flat network", flat: true, node: with(func(h *Holder) { h.Addresses = addrs("10.1.4.1") }), addresses: "10.1.4.1", want: "10.1.4.1"},
		{what: "a range with another's address, in a flat network", flat: true, node: with(func(h *Holder) { h.Annotated = prefixes("10.1.4.0/24") }), prefixes: "10.1.4.0/24",
			others: []Holder{{Name: "n9", Addresses: addrs("10.1.4.9")}}, problems: []string{"10.1.4.9", "n9"}},
		{what: "a pod CIDR that its node's annotation replaces", node: plain, prefixes: "10.1.8.7/32", others: []Holder{annotatedNode("n9", "10.1.9.0/24")}, want: "10.1.8.7/32"},
		{what: "what its Node does not have", node: plain, addresses: "192.0.2.5", problems: []string{"STR2304", "Node object"}},
		{what: "what an earlier version stated", node: fromBefore, addresses: "192.0.2.1 10.2.1.7", prefixes: "10.1.1.0/24 10.1.2.0/25 10.96.3.4/32", want: "192.0.2.1 10.1.1.0/24", problems: []string{"n2"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := wanted()
			w.Addresses, w.Prefixes = nil, nil
			for _, a := range strings.Fields(c.addresses) {
				w.Addresses = append(w.Addresses, netip.MustParseAddr(a))
			}
			w.Prefixes = prefixes(strings.Fields(c.prefixes)...)
			k := Known{
				Node: c.node, Others: append([]Holder{honestNode()}, c.others...), Pins: ownPins(),
				Foreign: []Statement{{Cluster: "west", Node: "n7", Addresses: addrs("192.0.2.200", "203.0.113.9")}}, ClusterSetIPs: prefixes("241.0.0.0/8"),
			}
			if pin := k.Pins["east"]; c.flat {
				pin.Nodes = append(pin.Nodes, pin.Pods[0])
				k.Pins["east"] = pin
			}
			got, left := Certify(w, k, began)
			if have := strings.Trim(fmt.Sprint(got.Addresses), "[]") + " " + strings.Trim(fmt.Sprint(got.Prefixes), "[]"); strings.TrimSpace(have) != c.want {
				t.Errorf("%s is stated, want %s", have, c.want)
			}
			all := ""
			for _, p := range left {
				all += string(p.Code) + ": " + p.String() + "\n"
			}
			for _, s := range c.problems {
				if !strings.Contains(all, s) {
					t.Errorf("no problem with %s: %s", s, all)
				}
			}
			if len(c.problems) == 0 && len(left) > 0 {
				t.Errorf("honest, and there are problems: %s", all)
			}
			if got.Locality != c.node.Locality || got.Key != node.Public() || got.Age(began.Add(Validity)) != Expired || got.Serial == 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestCertifyUnknown: while nothing is pinned, a node has its pod CIDRs alone.
func TestCertifyUnknown(t *testing.T) {
	w := wanted()
	w.Prefixes = prefixes("10.1.1.0/24", "10.1.3.0/24")
	h := Holder{Name: "n1", PodCIDRs: prefixes("10.1.1.0/24"), Annotated: prefixes("10.1.1.0/24", "10.1.3.0/24")}
	for _, pins := range []Pins{nil, {"east": {Cluster: "east"}}} {
		if got, left := Certify(w, Known{Node: h, Pins: pins}, began); !slices.Equal(got.Prefixes, prefixes("10.1.1.0/24")) || len(left) == 0 {
			t.Errorf("%v: it states %v, with problems %v", pins, got.Prefixes, left)
		}
	}
}

// somePrefix draws prefixes that meet those of others often.
func somePrefix(t *rapid.T, name string) netip.Prefix {
	if rapid.IntRange(0, 3).Draw(t, name+" family") == 0 {
		a := netip.AddrFrom16([16]byte{0: 0xfd, 3: byte(rapid.IntRange(1, 2).Draw(t, name+" 6")), 7: byte(rapid.IntRange(0, 3).Draw(t, name+" net")), 15: byte(rapid.IntRange(0, 3).Draw(t, name+" host"))})
		return netip.PrefixFrom(a, rapid.SampledFrom([]int{30, 47, 48, 63, 64, 65, 127, 128}).Draw(t, name+" bits")).Masked()
	}
	first := rapid.SampledFrom([][2]byte{{10, 1}, {10, 1}, {10, 2}, {10, 96}, {192, 0}, {241, 0}}).Draw(t, name+" range")
	third := byte(rapid.IntRange(0, 4).Draw(t, name+" third"))
	a := netip.AddrFrom4([4]byte{first[0], first[1], third, byte(rapid.SampledFrom([]int{0, 1, 2, 7, 128, 200}).Draw(t, name+" last"))})
	return netip.PrefixFrom(a, rapid.SampledFrom([]int{7, 8, 15, 16, 22, 23, 24, 25, 26, 31, 32}).Draw(t, name+" bits")).Masked()
}

func someAddr(t *rapid.T, name string) netip.Addr {
	if rapid.Bool().Draw(t, name+" own") {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(0, 4).Draw(t, name+" machine"))})
	}
	return somePrefix(t, name).Addr()
}

// TestCertifyHostile: whatever a node wants and has annotated, and whatever addresses it gives itself, nothing
// of an honest node, and nothing outside its cluster's ranges, is stated of it; and what it does takes nothing
// from the honest node.
func TestCertifyHostile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest, ps := honestNode(), rapid.SliceOfN(rapid.Custom(func(t *rapid.T) netip.Prefix { return somePrefix(t, "prefix") }), 0, 5)
		as := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) netip.Addr { return someAddr(t, "address") }), 0, 4)
		bad := Holder{Name: "n1", Addresses: as.Draw(t, "addresses"), Annotated: ps.Draw(t, "annotated"), Entry: ps.Draw(t, "entry")}
		if rapid.Bool().Draw(t, "stated before") { // by a version that did not look
			bad = stating(bad, as.Draw(t, "old addresses"), ps.Draw(t, "old prefixes"))
			bad.Stated.Addresses = slices.DeleteFunc(bad.Stated.Addresses, func(a netip.Addr) bool { return slices.Contains(honest.Addresses, a) })
			bad.Stated.Prefixes = slices.DeleteFunc(bad.Stated.Prefixes, func(p netip.Prefix) bool { return overlaps(honest.Entry, p) })
		}
		want := wanted()
		want.Node = bad.Name
		want.Addresses, want.Prefixes = append(as.Draw(t, "wanted addresses"), bad.Addresses...), slices.Concat(ps.Draw(t, "wanted"), bad.Annotated, bad.Entry)
		pins := ownPins()
		got, left := Certify(want, Known{Node: bad, Others: []Holder{honest}, Pins: pins, ClusterSetIPs: prefixes("241.0.0.0/8")}, began)
		for _, p := range got.Prefixes {
			standsBy := covers(bad.Entry, p) && covers([]netip.Prefix{p}, honest.Entry[0])
			if overlaps(honest.PodCIDRs, p) || overlaps(honest.Entry, p) && !standsBy || !covers(pins["east"].Pods, p) {
				t.Fatalf("prefix %s is stated of it", p)
			}
		}
		for _, a := range got.Addresses {
			if slices.Contains(honest.Addresses, a) || contains(honest.PodCIDRs, a) || contains(honest.Entry, a) || !contains(pins["east"].Nodes, a) || !slices.Contains(bad.Addresses, a) {
				t.Fatalf("address %s is stated of it", a)
			}
		}
		if len(left) > maxRefusals || slices.ContainsFunc(left, func(p clustermesh.Problem) bool {
			return p.Code != problem.ClaimContested && p.Code != problem.OutsideAuthority
		}) {
			t.Fatalf("problems %v", left)
		}

		bad.Stated = got
		again := wanted()
		again.Node, again.Addresses, again.Prefixes = honest.Name, honest.Addresses, honest.Stated.Prefixes
		kept, _ := Certify(again, Known{Node: honest, Others: []Holder{bad}, Pins: pins}, began)
		if !slices.Equal(kept.Addresses, honest.Addresses) || !slices.Equal(kept.Prefixes, honest.Stated.Prefixes) {
			t.Fatalf("the honest node keeps %v %v", kept.Addresses, kept.Prefixes)
		}
	})
}
