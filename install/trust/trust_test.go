package trust

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/bundle"
)

func prefixes(text ...string) (out []netip.Prefix) {
	for _, t := range text {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func member(id string, root byte, pods string, nodes ...string) Member {
	m := Member{Cluster: bundle.Cluster{ID: id, UID: "uid-" + id}, Root: authority.PublicKey{root}}
	if pods != "" {
		m.PodCIDRs = prefixes(strings.Fields(pods)...)
	}
	for _, n := range nodes {
		m.Nodes = append(m.Nodes, netip.MustParseAddrPort(n+":7946"))
	}
	return m
}

// TestRegionsAreThoseOfTheNodes: what every node's labels have is pinned. It must be inside a pin that exists.
func TestRegionsAreThoseOfTheNodes(t *testing.T) {
	ms := two()
	ms[0].Regions = []string{"eu", "us"}
	pins, err := Propose(ms, []string{"c1", "c2"}, Asked{}, now)
	if err != nil || !slices.Equal(pins["c1"].Regions, []string{"eu", "us"}) || len(pins["c2"].Regions) > 0 {
		t.Errorf("%+v, %v", pins, err)
	}
	ms[0].Pins, ms[0].Regions = pins, []string{"asia", "us"}
	if _, err := Propose(ms, nil, Asked{}, now); err == nil || !strings.Contains(err.Error(), "cluster c1 has a node in region asia, which is none of [eu us]: pass --regions c1=") {
		t.Errorf("a node in another region: %v", err)
	}
	again, err := Propose(ms, nil, Asked{Regions: map[string][]string{"c1": {"asia", "us"}}}, now)
	if err != nil || !slices.Equal(again["c1"].Regions, []string{"asia", "us"}) {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestZonesAreThoseOfTheNodes: without labels, the pin has none, and no node can claim a zone later.
func TestZonesAreThoseOfTheNodes(t *testing.T) {
	ms := two()
	ms[0].Zones, ms[1].Regions, ms[1].Zones = []string{"", "eu-1"}, []string{""}, []string{""}
	pins, err := Propose(ms, nil, Asked{}, now)
	if err != nil || !slices.Equal(pins["c1"].Zones, []string{"", "eu-1"}) || !slices.Equal(pins["c2"].Zones, []string{""}) || !slices.Equal(pins["c2"].Regions, []string{""}) {
		t.Errorf("%+v, %v", pins, err)
	}
	ms[0].Pins, ms[1].Regions, ms[1].Zones = pins, []string{""}, []string{"us-1"}
	if _, err := Propose(ms, nil, Asked{}, now); err == nil || !strings.Contains(err.Error(), "cluster c2 has a node in zone us-1, which is none of []: pass --zones c2=NAME[,NAME]") {
		t.Errorf("a node in a zone: %v", err)
	}
	again, err := Propose(ms, nil, Asked{Zones: map[string][]string{"c2": {"us-1"}}}, now)
	if err != nil || !slices.Equal(again["c2"].Zones, []string{"us-1"}) {
		t.Errorf("%+v, %v", again, err)
	}
}

func two() []Member {
	return []Member{
		member("c1", 1, "10.11.0.0/24 10.11.1.0/24", "172.31.1.1", "172.31.1.2"),
		member("c2", 2, "10.12.0.0/24", "172.31.2.1"),
	}
}

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestPropose(t *testing.T) {
	pins, err := Propose(two(), []string{"c1", "c2"}, Asked{}, now)
	if err != nil {
		t.Fatal(err)
	}
	c1 := pins["c1"]
	if !slices.Equal(c1.Pods, prefixes("10.11.0.0/16")) || !slices.Equal(c1.Nodes, prefixes("172.31.1.0/24")) || c1.UID != "uid-c1" ||
		!slices.Equal(c1.Roots, []authority.PublicKey{{1}}) || !slices.Equal(c1.Namespaces, []string{"*"}) || !c1.Joined.IsZero() {
		t.Errorf("%+v", c1)
	}
	// A cluster whose ranges only its pods show.
	byPods := member("c3", 3, "", "172.31.3.1")
	byPods.PodAddrs = []netip.Addr{netip.MustParseAddr("10.13.4.5"), netip.MustParseAddr("10.13.200.1"), netip.MustParseAddr("fd00:13::7")}
	if pins, err := Propose(append(two(), byPods), nil, Asked{}, now); err != nil || !slices.Equal(pins["c3"].Pods, prefixes("10.13.0.0/16", "fd00:13::/48")) {
		t.Errorf("%v %v", pins, err)
	}
	// A third joins later: it is younger, and what was chosen for the others stays.
	ms := append(two(), member("c3", 3, "10.13.0.0/24", "172.31.3.1"))
	chosen := pins["c1"]
	chosen.Pods = prefixes("10.11.0.0/20")
	pins["c1"] = chosen
	ms[0].Pins, ms[1].Pins = pins, pins
	after, err := Propose(ms, []string{"c1", "c2", "c3"}, Asked{Namespaces: map[string][]string{"c3": {"shop"}}}, now)
	if err != nil {
		t.Fatal(err)
	}
	if c3 := after["c3"]; !c3.Joined.Equal(now) || !slices.Equal(c3.Namespaces, []string{"shop"}) || !slices.Equal(after["c1"].Pods, prefixes("10.11.0.0/20")) {
		t.Errorf("%+v", after)
	}
	// With c1's context alone, the pin that it has of c2 is enough.
	if one, err := Propose(ms[:1], []string{"c1", "c2"}, Asked{}, now); err != nil || len(one) != 2 {
		t.Errorf("%v %v", one, err)
	}
}

// Each cluster decides for itself what it accepts.
func TestFor(t *testing.T) {
	ms := two()
	pins, err := Propose(ms, nil, Asked{}, now)
	if err != nil {
		t.Fatal(err)
	}
	mine := authority.Pins{}
	for c, p := range pins {
		p.Namespaces = []string{"mine"}
		mine[c] = p
	}
	ms[0].Pins = mine
	if got := For(pins, ms[0], Asked{})["c2"].Namespaces; !slices.Equal(got, []string{"mine"}) {
		t.Errorf("c1 accepts %v", got)
	}
	if got := For(pins, ms[1], Asked{})["c1"].Namespaces; !slices.Equal(got, []string{"*"}) {
		t.Errorf("c2 accepts %v", got)
	}
	if got := For(pins, ms[0], Asked{Namespaces: map[string][]string{"c2": {"*"}}})["c2"].Namespaces; !slices.Equal(got, []string{"*"}) {
		t.Errorf("c1 accepts %v after it was asked for all", got)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		ms    []Member
		asked Asked
		all   []string
		want  string
	}{
		{"overlap", []Member{member("c1", 1, "10.11.0.0/24", "172.31.1.1"), member("c2", 2, "10.11.9.0/24", "172.31.2.1")}, Asked{}, nil, "c1 have 10.11.0.0/16, and cluster c2 has 10.11.0.0/16"},
		{"pods in another's nodes", []Member{member("c1", 1, "172.31.0.0/24", "172.30.1.1"), member("c2", 2, "10.12.0.0/24", "172.31.2.1")}, Asked{}, nil, "give every cluster ranges of its own"},
		{"pods anywhere", []Member{{Cluster: member("c1", 1, "", "172.31.1.1").Cluster, Root: authority.PublicKey{1}, PodAddrs: []netip.Addr{netip.MustParseAddr("172.31.2.7")}}, two()[1]}, Asked{}, nil, "give every cluster ranges of its own"},
		{"no pods", []Member{member("c1", 1, "", "172.31.1.1"), two()[1]}, Asked{}, nil, "pass --pods c1=CIDR"},
		{"a range that misses pods", two(), Asked{Pods: map[string][]netip.Prefix{"c1": prefixes("10.11.0.0/24")}}, nil, "cluster c1 has pods at 10.11.1.0/24, which is not in"},
		{"a range that misses a node", two(), Asked{Nodes: map[string][]netip.Prefix{"c2": prefixes("172.31.9.0/24")}}, nil, "cluster c2 has a node at 172.31.2.1/32"},
		{"a member without a context", two(), Asked{}, []string{"c1", "c2", "c9"}, "cluster c9 is a member, and nothing is pinned of it"},
		{"an unknown id", two(), Asked{Regions: map[string][]string{"c7": {"x"}}}, nil, "c7 is the id of no cluster that was given: want one of c1, c2"},
		{"a range that no cluster can have", two(), Asked{Pods: map[string][]netip.Prefix{"c1": prefixes("0.0.0.0/0")}}, nil, "covers every address"},
	} {
		if _, err := Propose(c.ms, c.all, c.asked, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestCover(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.0/24":               "10.1.0.0/16",
		"10.0.0.0/12":               "10.0.0.0/12",
		"10.1.0.0/24 10.2.0.0/24":   "10.0.0.0/14",
		"10.1.0.0/24 fd00:1:2::/64": "10.1.0.0/16 fd00:1:2::/48",
	} {
		var got []string
		for _, p := range cover(prefixes(strings.Fields(text)...), 16, 48) {
			got = append(got, p.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	if cover(nil, 16, 48) != nil {
		t.Error("something covers nothing")
	}
}

// TestAlone: a cluster that only install or its leader has pinned is as one without pins: its ranges
// are proposed again, with its root, and one that joins others is younger than they are.
func TestAlone(t *testing.T) {
	ms := append(two(), member("c3", 3, "10.13.0.0/24 10.13.9.0/24", "172.31.3.1"))
	for i := range ms {
		alone, err := Alone(ms[i])
		own := alone[clustermesh.ClusterName(ms[i].ID)]
		if err != nil || len(alone) != 1 || len(own.Nodes) > 0 || len(own.Pods) == 0 || !slices.Equal(own.Roots, []authority.PublicKey{ms[i].Root}) {
			t.Fatalf("%+v, %v", alone, err)
		}
		own.Revoked = []string{"SHA256:ZX5R7sK0mLhA7sWc4wV9m1b9q3h2x0v8u6t4s2r0p1o"}
		ms[i].Pins = authority.Pins{own.Cluster: own}
	}
	ms[1].PodCIDRs = append(ms[1].PodCIDRs, netip.MustParsePrefix("10.14.0.0/24")) // since
	first, err := Propose(ms[:2], []string{"c1", "c2"}, Asked{}, now)
	if err != nil || !first["c1"].Joined.IsZero() || !first["c2"].Joined.IsZero() || len(first["c1"].Revoked) != 1 ||
		!slices.Equal(first["c1"].Nodes, prefixes("172.31.1.0/24")) || !slices.Equal(first["c2"].Pods, prefixes("10.12.0.0/14")) {
		t.Fatalf("%+v, %v", first, err)
	}
	ms[0].Pins, ms[1].Pins = first, first
	ms[2].Ranges = prefixes("10.13.0.0/20")
	then, err := Propose(ms, []string{"c1", "c2", "c3"}, Asked{}, now)
	if err == nil {
		t.Fatalf("10.13.0.0/20 is in 10.12.0.0/14: %+v", then)
	}
	narrow := Asked{Pods: map[string][]netip.Prefix{"c2": prefixes("10.12.0.0/16", "10.14.0.0/16")}}
	if then, err = Propose(ms, []string{"c1", "c2", "c3"}, narrow, now); err != nil || !then["c3"].Joined.Equal(now) || !then["c1"].Joined.IsZero() ||
		!slices.Equal(then["c3"].Pods, ms[2].Ranges) {
		t.Errorf("%+v, %v", then, err)
	}
}
