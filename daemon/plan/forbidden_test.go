package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

func pods(s *clustermesh.State, cluster, node string, texts ...string) {
	edit(s, cluster, node, func(c *clustermesh.Content) {
		c.Node.Prefixes = nil
		for _, p := range texts {
			c.Node.Prefixes = append(c.Node.Prefixes, netip.MustParsePrefix(p))
		}
	})
}

// on plans for node a/n1 on a machine: its underlay is 172.31.1.0/24, and its pods are 10.1.1.0/24.
func on(s clustermesh.State, c plan.Config) plan.Result {
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, c)
	p.Host = plan.Host{
		Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("172.31.1.1"), netip.MustParseAddr("10.1.1.1"),
			netip.MustParseAddr("192.168.50.7"), netip.MustParseAddr("fd00:50::7")},
		Connected: []netip.Prefix{netip.MustParsePrefix("172.31.1.0/24"), netip.MustParsePrefix("10.1.1.0/24"),
			netip.MustParsePrefix("192.168.60.0/24"), netip.MustParsePrefix("192.168.50.254/32")},
	}
	return p.plan(s)
}

func routed(r plan.Result) (out []string) {
	for _, rt := range r.Desired.Routes {
		if !rt.Unreachable {
			out = append(out, rt.Dst.String())
		}
	}
	return out
}

func forbidden(r plan.Result) (out []clustermesh.Problem) {
	for _, p := range r.Problems {
		if p.Code == problem.PrefixForbidden {
			out = append(out, p)
		}
	}
	return out
}

// TestForbiddenPrefixes: what cannot be a remote pod's address is not routed into the tunnel.
func TestForbiddenPrefixes(t *testing.T) {
	derived := plan.Config{Mesh: true}
	for _, tc := range []struct {
		prefix string
		why    string
		config plan.Config
	}{
		{prefix: "0.0.0.0/0", why: "wide", config: derived},
		{prefix: "128.0.0.0/2", why: "wide"},
		{prefix: "8000::/1", why: "wide"},
		{prefix: "2000::/3", why: "wide"},
		{prefix: "127.0.0.0/24", why: "loopback"},
		{prefix: "169.254.169.254/32", why: "link-local"},
		{prefix: "fe80::1/128", why: "link-local"},
		{prefix: "224.0.0.0/8", why: "multicast"},
		{prefix: "255.255.255.255/32", why: "broadcast"},
		{prefix: "255.255.0.0/16", why: "broadcast"},
		{prefix: "0.1.0.0/16", why: "this network"},
		{prefix: "172.31.1.1/32", why: "172.31.1.1, the address of node a/n1"},
		{prefix: "172.31.1.2/32", why: "172.31.1.2, the address of node a/n2"},
		{prefix: "172.31.2.0/24", why: "172.31.2.1, the address of node b/n1"},
		{prefix: "172.31.3.1/32", why: "172.31.3.1, the address of node c/n1"},
		{prefix: "172.16.0.0/12", why: "172.31.1.0/24, a network that this machine is connected to"},
		{prefix: "192.168.50.7/32", why: "192.168.50.7, an address of this machine"},
		{prefix: "fd00:50::/64", why: "fd00:50::7, an address of this machine"},
		{prefix: "192.168.60.0/24", why: "192.168.60.0/24, a network that this machine is connected to"},
		{prefix: "192.168.0.0/16", why: "192.168.50.7, an address of this machine"},
		{prefix: "192.168.50.254/32", why: "192.168.50.254, to which this machine is connected"},
		{prefix: "243.0.0.0/8", why: "strait chooses"},
		{prefix: "243.1.2.3/32", why: "strait chooses"},
		{prefix: "fd73:7472:6169::/64", why: "strait chooses"},
		{prefix: "241.1.2.0/24", why: "241.1.2.3, the address of a Service of this cluster", config: derived},
	} {
		if !tc.config.Mesh {
			tc.config = plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true}
		}
		s := clusterset()
		before := routed(on(s, tc.config))
		// With prefixes of its own besides, so that its tunnel stays.
		pods(&s, "b", "n1", "10.2.1.0/24", tc.prefix)
		r := on(s, tc.config)
		if got := routed(r); !slices.Equal(got, before) {
			t.Errorf("%s: routed %v, want %v", tc.prefix, got, before)
		}
		for _, p := range r.Desired.Peers {
			if slices.Contains(p.AllowedIPs, netip.MustParsePrefix(tc.prefix)) {
				t.Errorf("%s: peer %s has it", tc.prefix, p.Name)
			}
		}
		found := forbidden(r)
		if len(found) != 1 || found[0].Object != "node b/n1" || found[0].Try == "" ||
			!strings.Contains(strings.ReplaceAll(found[0].Message, "more addresses than the pods of a node", "wide"), tc.why) {
			t.Errorf("%s: problems %v, want one that says %q", tc.prefix, found, tc.why)
		}
	}
}

// TestPrefixesOfPods: what CNIs do is not taken for an attack.
func TestPrefixesOfPods(t *testing.T) {
	own := clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "b", Node: "n1"}, false)
	own6 := clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "b", Node: "n1"}, true)
	for name, prefixes := range map[string][]string{
		"a range":                         {"10.2.1.0/24"},
		"pods' own addresses":             {"10.2.1.7/32", "fd00:2::7/128", own.String() + "/32"},
		"without IPv4":                    {"fd00:2::/64", own6.String() + "/128"},
		"nested":                          {"10.2.0.0/16", "10.2.1.7/32"},
		"pods on the nodes' network":      {"172.31.1.200/32"},
		"a block of it":                   {"172.31.1.208/28"},
		"the whole of the largest range":  {"10.128.0.0/9"},
		"addresses of the public network": {"8.8.8.0/24", "2001:db8:1::/64"},
	} {
		s := clusterset()
		pods(&s, "b", "n1", prefixes...)
		r := on(s, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
		for _, p := range prefixes {
			if !slices.Contains(routed(r), p) {
				t.Errorf("%s: %s is not routed", name, p)
			}
		}
		if found := forbidden(r); len(found) > 0 {
			t.Errorf("%s: problems %v", name, found)
		}
	}
}

// TestForbiddenAtHome: the cluster whose node says it sees the Problem too, and what the node's own
// bridge has in its pods' prefix is no part of it.
func TestForbiddenAtHome(t *testing.T) {
	s := clusterset()
	pods(&s, "a", "n1", "10.1.1.0/24", "172.31.1.0/24", "128.0.0.0/2", "fe80::/64")
	r := on(s, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	found := forbidden(r)
	if len(found) != 1 || found[0].Object != "node a/n1" || !strings.Contains(found[0].Message, "and 2 more") {
		t.Errorf("problems %v, want one of all three prefixes", found)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}; !slices.Equal(r.Desired.Sources.Prefixes, want) {
		t.Errorf("sources %v, want %v", r.Desired.Sources.Prefixes, want)
	}
}

// TestContestedPrefix: if a cluster says that its node has an address in another's pod range, neither
// gets the range, or its word would redirect traffic. In the cluster itself nothing changes.
func TestContestedPrefix(t *testing.T) {
	s := clusterset()
	edit(&s, "b", "n1", func(c *clustermesh.Content) {
		c.Node.Addresses = append(slices.Clone(c.Node.Addresses), netip.MustParseAddr("10.3.1.200"), netip.MustParseAddr("10.1.1.200"))
	})
	pods(&s, "b", "n1", "10.2.1.0/24", "10.3.1.0/25", "10.1.1.0/25")
	r := on(s, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	var got []string
	for _, p := range r.Desired.Peers {
		got = append(got, fmt.Sprint(p.Name, p.AllowedIPs))
	}
	if want := "b/n1[10.2.1.0/24] b/n2[10.2.2.0/24] c/n2[10.3.2.0/24]"; strings.Join(got, " ") != want {
		t.Errorf("peers %s, want %s", strings.Join(got, " "), want)
	}
	want := datapath.Sources{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24")}, Node: netip.MustParseAddr("10.1.1.1")}
	if !slices.Equal(r.Desired.Sources.Prefixes, want.Prefixes) {
		t.Errorf("sources %v", r.Desired.Sources)
	}

	// A cluster whose name comes later gains nothing.
	s = clusterset()
	edit(&s, "c", "n1", func(c *clustermesh.Content) {
		c.Node.Addresses = append(slices.Clone(c.Node.Addresses), netip.MustParseAddr("10.2.1.200"))
	})
	pods(&s, "c", "n1", "10.3.1.0/24", "10.2.1.0/25")
	if got := routed(on(s, plan.Config{Mesh: true})); slices.Contains(got, "10.2.1.0/25") || slices.Contains(got, "10.2.1.0/24") {
		t.Errorf("routed %v: the contested range went to one of them", got)
	}
}

// TestHostUnknown: while the machine's addresses cannot be read, tunnels stay as they were.
func TestHostUnknown(t *testing.T) {
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: true})
	s := clusterset()
	p.Host = plan.Host{Unknown: true}
	if got := p.plan(s).Desired.Peers; len(got) > 0 {
		t.Errorf("peers %v before the machine is known", got)
	}
	p.Host = plan.Host{}
	before := p.plan(s).Desired
	pods(&s, "b", "n1", "192.168.50.0/24")
	p.Host = plan.Host{Unknown: true}
	if got := p.plan(s).Desired; len(before.Peers) == 0 || !slices.Equal(got.Routes, before.Routes) || len(got.Peers) != len(before.Peers) {
		t.Errorf("routes %v, want %v", got.Routes, before.Routes)
	}
	p.Host = plan.Host{Addrs: []netip.Addr{netip.MustParseAddr("192.168.50.7")}}
	if got := routed(p.plan(s)); slices.Contains(got, "192.168.50.0/24") {
		t.Errorf("routed %v", got)
	}
	p.Host = plan.Host{} // the address went
	if got := routed(p.plan(s)); !slices.Contains(got, "192.168.50.0/24") {
		t.Errorf("routed %v", got)
	}
}
