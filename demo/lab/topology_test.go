package lab

import (
	"net/netip"
	"strings"
	"testing"
)

func TestTopology(t *testing.T) {
	top := New(Size{Clusters: 3, Nodes: 2})
	if len(top.Nodes()) != 6 {
		t.Fatalf("%d nodes, want 6", len(top.Nodes()))
	}
	n := top.Clusters[2].Nodes[1]
	if n.Name != "eu-central-2" || n.Underlay != netip.MustParsePrefix("172.31.3.2/24") ||
		n.PodCIDR != netip.MustParsePrefix("10.3.2.0/24") || n.Gateway != netip.MustParseAddr("10.3.2.1") ||
		n.Router != netip.MustParseAddr("172.31.3.254") || n.Device != "strait6" {
		t.Errorf("node = %+v", n)
	}
	if far, ok := n.Pod(Far); !ok || far.Name != "far-2" || far.Addr != netip.MustParseAddr("10.3.2.30") {
		t.Errorf("far pod = %+v, %v", far, ok)
	}
	if _, ok := top.Clusters[0].Nodes[0].Pod(Far); ok {
		t.Error("the first cluster has a far pod, want it only in the last")
	}
	if r := top.Clusters[2].Resolvers(n); len(r) != 2 || r[0] != n.Gateway || r[1] != netip.MustParseAddr("10.3.1.1") {
		t.Errorf("resolvers = %v, want own gateway, then the neighbour's", r)
	}
}

// Nothing in the largest lab has the name or address of anything else.
func TestTopologyUnique(t *testing.T) {
	top := New(Size{Clusters: len(ClusterNames), Nodes: MaxNodes})
	seen := map[string]string{}
	claim := func(what, who string) {
		if other, taken := seen[what]; taken {
			t.Errorf("%s belongs to %s and to %s", what, other, who)
		}
		seen[what] = who
	}
	for _, ns := range top.namespaces() {
		claim(ns, "a namespace")
		if !ours.MatchString(ns) {
			t.Errorf("namespace %s would not be recognised as a leftover", ns)
		}
	}
	for _, c := range top.Clusters {
		claim(c.Gateway.String(), c.Name)
		claim(c.Uplink.String(), c.Name)
		for _, n := range c.Nodes {
			claim(n.Underlay.Addr().String(), n.Name)
			claim(n.Gateway.String(), n.Name)
			claim(n.Device, n.Name)
			if len(n.Name) > 15 || len(n.Device) > 15 {
				t.Errorf("%s or %s is too long for a device", n.Name, n.Device)
			}
			for _, p := range n.Pods {
				claim(p.Addr.String(), n.Name+"/"+p.Name)
			}
		}
	}
}

func TestForeignNamesAreNotOurs(t *testing.T) {
	for _, name := range []string{"strait-t-1", "strait-", "strait-us-east", "strait-us-east-1-web", "us-east-1", "strait-core2", "xstrait-core"} {
		if ours.MatchString(name) {
			t.Errorf("%q counts as ours", name)
		}
	}
}

func TestFind(t *testing.T) {
	top := New(Size{Clusters: 2, Nodes: 1})
	for text, want := range map[string]Place{
		"us-east-1":        {"us-east-1", ""},
		"us-east-1/client": {"us-east-1", "client"},
		"us-west-1/far":    {"us-west-1", "far"},
	} {
		if got, err := top.Find(text); err != nil || got != want || got.String() != text {
			t.Errorf("Find(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"us-east-2":     "it has us-east-1, us-west-1",
		"us-east-1/far": "it has serve, client",
		"us-east-1/":    "has no pod",
		"":              "no node",
	} {
		if _, err := top.Find(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q): error %v, want %q", text, err, want)
		}
	}
}

func TestSizeCheck(t *testing.T) {
	for _, s := range []Size{{1, 2}, {9, 2}, {3, 0}, {3, MaxNodes + 1}} {
		if s.Check() == nil {
			t.Errorf("Size %+v passes", s)
		}
	}
	if err := (Size{3, 2}).Check(); err != nil {
		t.Errorf("Size 3×2: %v", err)
	}
}
