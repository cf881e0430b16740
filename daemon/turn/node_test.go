package turn

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func addrs(texts ...string) (out []netip.Addr) {
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func TestNodePrefixes(t *testing.T) {
	node := addrs("192.0.2.7")
	for _, tc := range []struct {
		name            string
		written, object []netip.Prefix
		pods            []netip.Addr
		want            []netip.Prefix
	}{
		{"what is written down wins", prefixes("10.9.0.0/16"), prefixes("10.1.1.0/24"), addrs("172.16.0.1"), prefixes("10.9.0.0/16")},
		{"all pods inside", nil, prefixes("10.1.1.0/24", "fd00:1::/64"), addrs("10.1.1.9", "fd00:1::9"), prefixes("10.1.1.0/24", "fd00:1::/64")},
		{"no pods yet", nil, prefixes("10.1.1.0/24"), nil, prefixes("10.1.1.0/24")},
		{"a pod outside", nil, prefixes("10.1.1.0/24"), addrs("172.16.0.2", "10.1.1.9", "172.16.0.2"), prefixes("10.1.1.9/32", "172.16.0.2/32")},
		{"no podCIDRs", nil, nil, addrs("172.16.0.2", "fd00::2"), prefixes("172.16.0.2/32", "fd00::2/128")},
		{"the host's network is no pod's", nil, prefixes("10.1.1.0/24"), addrs("192.0.2.7", "10.1.1.9"), prefixes("10.1.1.0/24")},
		{"nothing", nil, nil, node, nil},
	} {
		if got := nodePrefixes(tc.written, tc.object, node, tc.pods); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// What is written down for a node counts more than what is found out: in the config, else in the annotation of its Node.
func TestWrittenPrefixes(t *testing.T) {
	annotated := clustermesh.Local{NodePrefixes: map[clustermesh.NodeName][]netip.Prefix{"n1": prefixes("10.9.1.0/24")}}
	for _, tc := range []struct {
		name   string
		config []netip.Prefix
		node   clustermesh.NodeName
		want   []netip.Prefix
	}{
		{"the config", prefixes("10.8.1.0/24"), "n1", prefixes("10.8.1.0/24")},
		{"the annotation", nil, "n1", prefixes("10.9.1.0/24")},
		{"another node's annotation", nil, "n2", nil},
	} {
		m := Machine{Origin: clustermesh.Origin{Cluster: "a", Node: tc.node}, Prefixes: tc.config}
		if got, _ := NodeContent(m, annotated); !slices.Equal(got.Node.Prefixes, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got.Node.Prefixes, tc.want)
		}
	}
}

// What objects do not say the machine completes; what concerns tunnels is left out where there are none.
func TestNodeContent(t *testing.T) {
	local := clustermesh.Local{
		Nodes: []clustermesh.Node{{Name: "n1", Prefixes: prefixes("10.1.1.0/24")}},
		Endpoints: []clustermesh.Endpoint{
			{Addr: netip.MustParseAddr("10.1.1.10"), Node: "n1"}, {Addr: netip.MustParseAddr("10.1.2.10"), Node: "n2"},
		},
	}
	m := Machine{
		Origin: clustermesh.Origin{Cluster: "a", Node: "n1"}, Advertise: netip.MustParseAddrPort("192.0.2.1:7946"),
		Mesh: true, Key: key.Public{7}, Port: 51820, Addresses: addrs("127.0.0.1", "10.1.1.1"),
	}
	c, found := NodeContent(m, local)
	n := c.Node
	if !found || len(c.Endpoints) != 1 || !slices.Equal(n.Addresses, addrs("192.0.2.1")) || n.GossipPort != 7946 ||
		n.PublicKey != m.Key || n.WireGuardPort != 51820 || n.Inside != m.Addresses[1] || !slices.Equal(n.Prefixes, prefixes("10.1.1.0/24")) {
		t.Errorf("%v %+v", found, *n)
	}
	for version, want := range map[string]string{"v0.1.0": "v0.1.0", "": "", strings.Repeat("v", 65): "", "v1\n": ""} {
		m.Version = version
		if c, _ := NodeContent(m, local); c.Node.Version != want {
			t.Errorf("of version %q it publishes %q, want %q", version, c.Node.Version, want)
		}
	}
	m.Mesh = false
	if c, _ := NodeContent(m, local); !c.Node.PublicKey.IsZero() || c.Node.WireGuardPort != 0 || c.Node.Inside.IsValid() {
		t.Errorf("without tunnels: %+v", *c.Node)
	}
	if _, found := NodeContent(m, clustermesh.Local{}); found {
		t.Error("a Node object was found that is not there")
	}
	m.Pods = addrs("172.16.0.1")
	if c, _ := NodeContent(m, local); !slices.Equal(c.Node.Prefixes, prefixes("172.16.0.1/32")) {
		t.Errorf("with a pod outside its prefixes: %v", c.Node.Prefixes)
	}
}

// An EndpointSlice, which tenants write, gives a node no address, and takes none from it. Among files,
// an endpoint in a second network has its address beside the node's prefixes.
func TestEndpointsGiveNoPrefix(t *testing.T) {
	local := clustermesh.Local{
		Nodes: []clustermesh.Node{{Name: "n1", Addresses: addrs("192.0.2.1"), Prefixes: prefixes("10.1.1.0/24")}},
	}
	for _, a := range addrs("10.1.1.10", "198.51.100.7", "192.0.2.1", "198.51.100.7") {
		local.Endpoints = append(local.Endpoints, clustermesh.Endpoint{Addr: a, Node: "n1"})
	}
	m := Machine{Origin: clustermesh.Origin{Cluster: "a", Node: "n1"}}
	for _, c := range []struct {
		what    string
		files   bool
		written []netip.Prefix
		want    []netip.Prefix
	}{
		{"of an API server", false, nil, prefixes("10.1.1.0/24")},
		{"of files", true, nil, prefixes("10.1.1.0/24", "198.51.100.7/32")},
		{"of files, with prefixes written down", true, prefixes("10.8.0.0/16"), prefixes("10.8.0.0/16")},
	} {
		m.ReadsFiles, m.Prefixes = c.files, c.written
		if got, _ := NodeContent(m, local); !slices.Equal(got.Node.Prefixes, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got.Node.Prefixes, c.want)
		}
	}
}

// TestEntryContent: a node with tunnels is the entry to the ClusterIPs of its annotation; an address of its own
// that is one, as kube-proxy gives in some modes, is no way into the tunnel.
func TestEntryContent(t *testing.T) {
	local := clustermesh.Local{
		Nodes:          []clustermesh.Node{{Name: "n1", Prefixes: prefixes("10.1.1.0/24")}},
		NodeClusterIPs: map[clustermesh.NodeName][]netip.Prefix{"n1": prefixes("10.96.0.0/16"), "n2": prefixes("10.97.0.0/16")},
	}
	m := Machine{
		Origin: clustermesh.Origin{Cluster: "a", Node: "n1"}, Advertise: netip.MustParseAddrPort("192.0.2.1:7946"),
		Mesh: true, Key: key.Public{7}, Port: 51820, Addresses: addrs("10.96.0.1"),
	}
	c, _ := NodeContent(m, local)
	inside := clustermesh.TunnelAddr(m.Origin, false)
	if n := c.Node; !slices.Equal(n.ClusterIPs, prefixes("10.96.0.0/16")) || n.Inside != inside ||
		!slices.Equal(n.Prefixes, prefixes("10.1.1.0/24", inside.String()+"/32", "10.96.0.0/16")) {
		t.Errorf("%+v", *n)
	}
	m.Mesh = false
	if c, _ := NodeContent(m, local); len(c.Node.ClusterIPs) > 0 || !slices.Equal(c.Node.Prefixes, prefixes("10.1.1.0/24")) {
		t.Errorf("without tunnels: %+v", *c.Node)
	}
}

func TestFirstInside(t *testing.T) {
	own := addrs("127.0.0.1", "10.8.0.9", "10.8.0.1", "10.9.0.1", "fd00:8::1")
	for text, want := range map[string]string{
		"10.8.0.0/16":              "10.8.0.1",
		"10.9.0.0/16 10.8.0.0/16":  "10.9.0.1",
		"10.77.0.0/16 fd00:8::/32": "fd00:8::1",
		"10.77.0.0/16":             "",
		"":                         "",
	} {
		got := firstInside(own, prefixes(strings.Fields(text)...))
		if want == "" && got.IsValid() || want != "" && got != netip.MustParseAddr(want) {
			t.Errorf("inside %q: %v, want %q", text, got, want)
		}
	}
}

// A node without an address in its pod network gets one; what the source gave is not written to.
func TestGiveInside(t *testing.T) {
	o := clustermesh.Origin{Cluster: "a", Node: "n1"}
	v4, v6 := netip.MustParsePrefix("10.1.1.10/32"), netip.MustParsePrefix("fd00:1::10/128")
	underlay := netip.MustParseAddr("192.0.2.1")
	for _, tc := range []struct {
		name     string
		prefixes []netip.Prefix
		own      netip.Addr
		want     netip.Addr
	}{
		{"its own", []netip.Prefix{v4}, netip.MustParseAddr("10.1.1.10"), netip.MustParseAddr("10.1.1.10")},
		{"of its pods' family", []netip.Prefix{v4, v6}, netip.Addr{}, clustermesh.TunnelAddr(o, false)},
		{"of its pods' family, IPv6", []netip.Prefix{v6}, netip.Addr{}, clustermesh.TunnelAddr(o, true)},
		{"without pods, of the underlay's", nil, netip.Addr{}, clustermesh.TunnelAddr(o, false)},
	} {
		shared := append(tc.prefixes, netip.MustParsePrefix("198.51.100.0/24"))
		n := clustermesh.Node{Addresses: []netip.Addr{underlay}, Prefixes: shared[:len(tc.prefixes)]}
		giveInside(&n, tc.own, o)
		accepted := false
		for _, p := range n.Prefixes {
			accepted = accepted || p.Contains(n.Inside)
		}
		if n.Inside != tc.want || !accepted {
			t.Errorf("%s: inside %s, want %s; prefixes %v", tc.name, n.Inside, tc.want, n.Prefixes)
		}
		if shared[len(tc.prefixes)] != netip.MustParsePrefix("198.51.100.0/24") {
			t.Errorf("%s: the source's prefixes were changed", tc.name)
		}
	}
}

// Pods on the node's own addresses are marked, if the tunnel can carry their family. What the source
// gave is not written to.
func TestOnHost(t *testing.T) {
	local := clustermesh.Local{
		Nodes: []clustermesh.Node{{Name: "n1", Addresses: addrs("192.0.2.1", "2001:db8::1"), Prefixes: prefixes("10.1.1.0/24")}},
		Endpoints: []clustermesh.Endpoint{
			{Addr: netip.MustParseAddr("10.1.1.10"), Node: "n1"}, {Addr: netip.MustParseAddr("192.0.2.1"), Node: "n1"},
			{Addr: netip.MustParseAddr("2001:db8::1"), Node: "n1"},
		},
	}
	m := Machine{Origin: clustermesh.Origin{Cluster: "a", Node: "n1"}, Mesh: true, Addresses: addrs("10.1.1.1")}
	marked := func() (out []bool) {
		c, _ := NodeContent(m, local)
		for _, e := range c.Endpoints {
			out = append(out, e.OnHost)
		}
		return out
	}
	if got := marked(); !slices.Equal(got, []bool{false, true, false}) {
		t.Errorf("marked %v", got)
	}
	if local.Endpoints[1].OnHost {
		t.Error("the source's list was written to")
	}
	m.Mesh = false
	if got := marked(); slices.Contains(got, true) {
		t.Errorf("without tunnels: %v", got)
	}
}
