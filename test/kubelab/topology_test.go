package kubelab

import (
	"net/netip"
	"testing"
)

func TestTopology(t *testing.T) {
	top, err := NewTopology(3, 9, "c2")
	if err != nil {
		t.Fatal(err)
	}
	n, err := top.Clusters[0].Node("c1n2")
	want := Node{
		Cluster: "c1", Name: "c1n2", Zone: "c1-b", Addr: netip.MustParseAddr("172.31.1.2"), Pods: netip.MustParsePrefix("10.11.2.0/24"),
	}
	if err != nil || n != want {
		t.Errorf("node %+v (%v), want %+v", n, err, want)
	}
	if n, err := top.Clusters[1].Node("c2n5"); err != nil || n.Pods != netip.MustParsePrefix("10.12.1.64/26") {
		t.Errorf("node without podCIDRs: %+v (%v), want pods in 10.12.1.64/26", n, err)
	}
	if c := top.Clusters[2]; c.server() != netip.MustParseAddrPort("172.31.3.254:6443") || c.apiService() != netip.MustParseAddr("10.203.0.1") {
		t.Errorf("API server of c3 at %s and %s", c.server(), c.apiService())
	}
}

// No two ranges of the largest lab overlap, whichever clusters have podCIDRs.
func TestTopologyUnique(t *testing.T) {
	for _, without := range [][]string{nil, {"c1", "c2", "c3"}, {"c2"}} {
		top, err := NewTopology(MaxClusters, MaxNodes, without...)
		if err != nil {
			t.Fatal(err)
		}
		type owned struct {
			netip.Prefix
			by string
		}
		var all []owned
		claim := func(p netip.Prefix, by string) {
			for _, o := range all {
				if o.Overlaps(p) {
					t.Errorf("%s of %s overlaps %s of %s", p, by, o.Prefix, o.by)
				}
			}
			all = append(all, owned{p, by})
			if !p.IsValid() || p != p.Masked() {
				t.Errorf("%s of %s is no network", p, by)
			}
		}
		for _, c := range top.Clusters {
			claim(c.Services, c.Name+" services")
			claim(netip.PrefixFrom(c.Gateway, 32), c.Name+" gateway")
			if !c.Services.Contains(c.DNS) || !c.Underlay.Contains(c.Gateway) {
				t.Errorf("%s: DNS %s or gateway %s is not in its network", c.Name, c.DNS, c.Gateway)
			}
			for _, n := range c.Nodes {
				claim(n.Pods, n.Name+" pods")
				claim(netip.PrefixFrom(n.Addr, 32), n.Name)
				if !c.Underlay.Contains(n.Addr) {
					t.Errorf("%s: %s is not in %s", n.Name, n.Addr, c.Underlay)
				}
			}
		}
	}
}

func TestTopologyRefuses(t *testing.T) {
	for _, tc := range []struct {
		clusters, nodes int
		without         []string
	}{{0, 1, nil}, {4, 1, nil}, {1, -1, nil}, {1, 10, nil}, {2, 1, []string{"c3"}}} {
		if _, err := NewTopology(tc.clusters, tc.nodes, tc.without...); err == nil {
			t.Errorf("%+v passes", tc)
		}
	}
}
