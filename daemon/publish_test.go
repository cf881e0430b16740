package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

func TestAdvertised(t *testing.T) {
	dir := t.TempDir()
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {addresses: [{type: InternalIP, address: 192.0.2.7}]}\n"
	if err := os.WriteFile(filepath.Join(dir, "n1.yaml"), []byte(node), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, bind, advertise, node, want, wantErr string }{
		{"as configured", "0.0.0.0:7946", "198.51.100.1:1", "n1", "198.51.100.1:1", ""},
		{"where it binds", "192.0.2.9:7946", "", "n1", "192.0.2.9:7946", ""},
		{"a wildcard takes the Node's address", "0.0.0.0:7946", "", "n1", "192.0.2.7:7946", ""},
		{"a wildcard without a Node", "[::]:7946", "", "n2", "", "gossip.advertise"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Config{Node: tc.node, Source: SourceConfig{Manifest: dir}, Gossip: GossipConfig{Bind: tc.bind, Advertise: tc.advertise}}
			got, err := advertised(c)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("got %v, %v; want %s", got, err, tc.want)
			}
		})
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
