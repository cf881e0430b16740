package trustlevel

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

const someKey = "SHA256:ZX5R7sK0mLhA7sWc4wV9m1b9q3h2x0v8u6t4s2r0p1o"

// told is the file of a member with a root of its own.
func told(name clustermesh.ClusterName, root byte, revoked ...string) string {
	return string(authority.Member{
		Pin:   authority.Pin{Cluster: name, Roots: []authority.PublicKey{{root}}, Revoked: revoked},
		Seeds: []string{string(name) + ".example:7946"},
	}.Encode())
}

// made is pins as the leader makes them, or strait clusterset connect.
func made(clusters map[clustermesh.ClusterName]byte, revoked ...string) string {
	pins := authority.Pins{}
	for c, root := range clusters {
		pins[c] = authority.Pin{Cluster: c, Roots: []authority.PublicKey{{root}}, Revoked: revoked}
	}
	return string(pins.Encode())
}

type byCluster = map[clustermesh.ClusterName]byte

// TestMembers: with members, they are who is pinned; of the pins beside them, only the own one
// counts, and the keys that it revokes.
func TestMembers(t *testing.T) {
	for name, c := range map[string]struct {
		pins    string
		members map[string]string
		want    byCluster
		revoked int // in the own pin
		seeds   []string
		fault   string
	}{
		"pins alone":           {made(byCluster{"a": 1, "b": 2}), nil, byCluster{"a": 1, "b": 2}, 0, nil, ""},
		"the own pin is made":  {made(byCluster{"a": 1}), map[string]string{"b.yaml": told("b", 2)}, byCluster{"a": 1, "b": 2}, 0, []string{"b.example:7946"}, ""},
		"all are members":      {made(byCluster{"a": 9}), map[string]string{"a.yaml": told("a", 1), "b": told("b", 2)}, byCluster{"a": 1, "b": 2}, 0, []string{"b.example:7946"}, ""},
		"before it is made":    {"", map[string]string{"a.yaml": told("a", 1)}, byCluster{"a": 1}, 0, nil, ""},
		"one that left":        {made(byCluster{"a": 1, "b": 2}), map[string]string{"a.yaml": told("a", 1)}, byCluster{"a": 1}, 0, nil, ""},
		"revoked here":         {made(byCluster{"a": 1}, someKey), map[string]string{"a.yaml": told("a", 1), "b": told("b", 2)}, byCluster{"a": 1, "b": 2}, 1, []string{"b.example:7946"}, ""},
		"revoked in both":      {made(byCluster{"a": 1}, someKey), map[string]string{"a.yaml": told("a", 1, someKey)}, byCluster{"a": 1}, 1, nil, ""},
		"the own one lacks":    {"", map[string]string{"b.yaml": told("b", 2)}, nil, 0, []string{"b.example:7946"}, "does not list this cluster, a"},
		"one cluster twice":    {"", map[string]string{"a.yaml": told("a", 1), "b.yaml": told("a", 2)}, nil, 0, nil, "b.yaml: cluster: a is in a.yaml too"},
		"a broken file":        {"", map[string]string{"a.yaml": told("a", 1), "b.yaml": "cluster: b\n"}, nil, 0, nil, "b.yaml: roots: has 0 keys"},
		"broken pins":          {"clusters: []\n", map[string]string{"a.yaml": told("a", 1)}, nil, 0, nil, "clusters: is empty"},
		"pins that look alike": {"{\"members\":[]}", nil, nil, 0, nil, "read pins and members"},
	} {
		text := Listed(c.pins, c.members)
		pins, err := ParsePins(text, "a", nil)
		if (c.fault == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
			continue
		}
		got := byCluster{}
		for n, p := range pins {
			got[n] = p.Roots[0][0]
		}
		if !maps.Equal(got, c.want) && len(c.want) > 0 || len(pins["a"].Revoked) != c.revoked {
			t.Errorf("%s: pinned %v, and revoked %v; want %v", name, got, pins["a"].Revoked, c.want)
		}
		if seeds := Seeds(text, "a"); !slices.Equal(seeds, c.seeds) && c.fault == "" {
			t.Errorf("%s: seeds %v, want %v", name, seeds, c.seeds)
		}
	}
}

// TestLost: a folder of members that is suddenly empty cuts no cluster off; to leave is a decision.
func TestLost(t *testing.T) {
	alone := made(byCluster{"a": 1})
	with := Listed(alone, map[string]string{"b.yaml": told("b", 2)})
	left := Listed(alone, map[string]string{"a.yaml": told("a", 1)})
	connected := made(byCluster{"a": 1, "b": 2})
	for _, c := range []struct {
		text, inForce string
		lost          bool
	}{{alone, with, true}, {left, with, false}, {connected, with, false}, {alone, alone, false}, {alone, "", false}, {alone, connected, false}, {with, with, false}} {
		pins, err := Pins(c.text, "a")
		if err != nil {
			t.Fatal(err)
		}
		if lost := Lost(c.text, c.inForce, pins); (lost != nil) != c.lost {
			t.Errorf("%q after %q: %v", c.text, c.inForce, lost)
		}
	}
	for text, awaited := range map[string]bool{
		alone: false, with: false, "": false,
		Listed("", map[string]string{"b.yaml": told("b", 2)}):                         true,
		Listed("", map[string]string{"b.yaml": "x"}):                                  false,
		Listed("", map[string]string{"b.yaml": told("b", 2), "a.yaml": told("a", 1)}): false,
	} {
		if got := Awaited(text, "a"); got != awaited {
			t.Errorf("%q: awaited %v", text, got)
		}
	}
}

// TestOwnMember: what a cluster tells of itself covers what it has, names the root that it signs
// with, and the one before while that still counts.
func TestOwnMember(t *testing.T) {
	prefix, addr := netip.MustParsePrefix, netip.MustParseAddr
	node := func(name, a, pods, zone string) clustermesh.Node {
		return clustermesh.Node{Name: clustermesh.NodeName(name), Addresses: []netip.Addr{addr(a)}, Prefixes: []netip.Prefix{prefix(pods)}, Locality: clustermesh.Locality{Region: "r", Zone: zone}}
	}
	o := Own{
		Cluster: "a", UID: "u", Root: authority.PublicKey{1}, Port: 7946,
		Pin:   authority.Pin{Cluster: "a", Roots: []authority.PublicKey{{1}}, Pods: []netip.Prefix{prefix("10.1.0.0/16")}, Namespaces: []string{"shop"}, Revoked: []string{someKey}},
		Nodes: []clustermesh.Node{node("n2", "192.0.2.2", "10.1.2.0/24", "z2"), node("n1", "192.0.2.1", "10.1.1.0/24", "z1")},
	}
	const first = "cluster: a\nnamespaces:\n- shop\nnodes:\n- 192.0.2.0/24\npods:\n- 10.1.0.0/16\nregions:\n- r\nrevoked:\n- " + someKey +
		"\nroots:\n- AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nseeds:\n- 192.0.2.1:7946\n- 192.0.2.2:7946\nuid: u\nzones:\n- z1\n- z2\n"
	if got := string(o.Member().Encode()); got != first {
		t.Errorf("it tells\n%s\nwant\n%s", got, first)
	}
	if _, err := authority.ParseMember(o.Member().Encode()); err != nil {
		t.Error(err)
	}
	o.Pin = o.Member().Pin
	o.Nodes = append(o.Nodes, node("n3", "192.0.9.1", "10.7.1.0/24", "z1"))
	if m := o.Member(); !slices.Equal(m.Pods, []netip.Prefix{prefix("10.1.0.0/16"), prefix("10.7.0.0/16")}) || !slices.Equal(m.Nodes, []netip.Prefix{prefix("192.0.2.0/24"), prefix("192.0.9.0/24")}) {
		t.Errorf("with another network: %+v", m)
	}
	for range 2 * authority.MaxSeeds {
		o.Nodes = append(o.Nodes, node("n", "192.0.2.9", "10.1.9.0/24", "z1"))
	}
	if m := o.Member(); len(m.Seeds) != authority.MaxSeeds {
		t.Errorf("%d seeds", len(m.Seeds))
	}
	o.Pin.Pods, o.Pin.Nodes = []netip.Prefix{prefix("10.1.0.0/20"), prefix("10.7.0.0/16")}, []netip.Prefix{prefix("192.0.2.0/28"), prefix("192.0.9.0/24")}
	if m := o.Member(); !slices.Equal(m.Pods, o.Pin.Pods) || !slices.Equal(m.Nodes, o.Pin.Nodes) {
		t.Errorf("what was narrowed is widened again: %+v", m)
	}
	both := []authority.PublicKey{{1}, {2}}
	o.Pin.Roots = both
	if m := o.Member(); !slices.Equal(m.Roots, both[:1]) {
		t.Errorf("before the new root signs: %v", m.Roots)
	}
	o.Root, o.Signed = both[1], map[clustermesh.Origin]authority.PublicKey{{Cluster: "a", Node: "n1"}: both[0], {Cluster: "b", Node: "n1"}: both[0]}
	if m := o.Member(); !slices.Equal(m.Roots, []authority.PublicKey{both[1], both[0]}) {
		t.Errorf("while the old one counts: %v", m.Roots)
	}
	o.Signed[clustermesh.Origin{Cluster: "a", Node: "n1"}] = both[1]
	if m := o.Member(); !slices.Equal(m.Roots, both[1:]) {
		t.Errorf("when it counts no more: %v", m.Roots)
	}
}

// FuzzListed: whatever the files hold, the text of all of them says which is which, and is read
// without harm.
func FuzzListed(f *testing.F) {
	f.Add("clusters: []\n", "a.yaml", told("a", 1))
	f.Add("{\"members\":[]}", "\x7f", "x")
	f.Add("", "b", "cluster: a\n---\n")
	f.Fuzz(func(t *testing.T, pins, name, member string) {
		_, _ = Pins(pins, "a") // a text that a daemon before this one saved
		members := map[string]string{name: member}
		text := Listed(pins, members)
		l, has, err := read(text)
		if err != nil || !has {
			t.Fatalf("%q: %v", text, err)
		}
		if utf8.ValidString(pins) && utf8.ValidString(name) && utf8.ValidString(member) && (l.Pins != pins || !maps.Equal(l.Members, members)) {
			t.Fatalf("%q: %+v", text, l)
		}
		if all, err := Pins(text, "a"); err == nil && len(all) == 0 {
			t.Fatal("no member, and no error")
		}
		Seeds(text, "a")
		Awaited(text, "a")
	})
}
