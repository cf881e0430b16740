package trustlevel

import (
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/problem"
)

// TestInForce: the file decides. When it is gone or wrong, only a last value of pinned
// stays in force.
func TestInForce(t *testing.T) {
	for _, c := range []struct {
		text       string
		unreadable error
		last       string
		want       Level
		wrong      bool
	}{
		{"", fs.ErrNotExist, "", All, false},
		{"pinned\n", nil, "", Pinned, false},
		{"all", nil, "pinned", All, false},
		{"nobody", nil, "", All, true},
		{"nobody", nil, "pinned", Pinned, true},
		{"", nil, "pinned\n", Pinned, false},
		{"all", fs.ErrNotExist, "pinned", Pinned, false},
		{"pinned", errors.New("unreadable"), "all", All, false},
	} {
		if b, wrong := InForce(c.text, c.unreadable, c.last); b != c.want || (wrong != nil) != c.wrong {
			t.Errorf("%q, %v, last %q: %q, %v; want %q", c.text, c.unreadable, c.last, b, wrong, c.want)
		}
	}
}

// TestOpen: a node that trusts every holder of the gossip key warns, with what to do, unless that is
// configured or the node is alone.
func TestOpen(t *testing.T) {
	later := Config{Signs: true, Pins: true, Later: true}
	for name, c := range map[string]struct {
		o       Open
		message string
	}{
		"alone, outside Kubernetes":          {Open{TrustsAll: true}, ""},
		"off":                                {Open{TrustsAll: true, Config: Config{Off: true}, Company: Company{Seeds: true}}, ""},
		"pinned":                             {Open{Config: Config{Signs: true, Pins: true}, Pinned: true, Company: Company{Seeds: true}}, ""},
		"seeds":                              {Open{TrustsAll: true, Company: Company{Seeds: true}}, "neither keys nor pins"},
		"another node":                       {Open{TrustsAll: true, Company: Company{Nodes: true}}, "strait clusterset init"},
		"another cluster":                    {Open{TrustsAll: true, Company: Company{Nodes: true, Unpinned: []string{"b"}}}, "neither keys nor pins"},
		"a root alone":                       {Open{TrustsAll: true, Config: Config{Signs: true}, Company: Company{Seeds: true}}, "set authority.pinsFile"},
		"all, by configuration":              {Open{TrustsAll: true, Pinned: true, Config: Config{Signs: true, Pins: true, All: true}, Company: Company{Seeds: true}}, "authority.believe is all"},
		"Kubernetes, without authority":      {Open{TrustsAll: true, Kubernetes: true}, "strait clusterset connect"},
		"its keys are being made":            {Open{TrustsAll: true, Kubernetes: true, Config: later, Age: time.Minute}, ""},
		"its keys were not made":             {Open{TrustsAll: true, Kubernetes: true, Config: later, Age: openGrace}, "which its leader makes"},
		"an upgrade, with another cluster":   {Open{TrustsAll: true, Kubernetes: true, Pinned: true, Known: 1, Config: later, Company: Company{Unpinned: []string{"b"}}}, "b is not pinned"},
		"an upgrade, the other is not heard": {Open{TrustsAll: true, Kubernetes: true, Pinned: true, Known: 1, Config: later, Company: Company{Seeds: true}}, "none of them is pinned"},
		"many":                               {Open{TrustsAll: true, Kubernetes: true, Pinned: true, Known: 1, Config: later, Company: Company{Unpinned: []string{"b", "c", "d", "e"}}}, "b, c, d and 1 more are not pinned"},
		"pinned, and not all sign":           {Open{TrustsAll: true, Kubernetes: true, Pinned: true, Known: 2, Config: later, Company: Company{Seeds: true, Unsigned: []string{"b/n1"}}}, "b/n1 is not signed yet"},
		"pods that no signer certifies":      {Open{TrustsAll: true, Kubernetes: true, Pinned: true, Known: 2, Config: later, Company: Company{Seeds: true, Outside: []string{"10.9.0.0/16 of node n1"}}}, "not in the pinned pods"},
		"pinned, signed, and without leader": {Open{TrustsAll: true, Kubernetes: true, Pinned: true, Known: 2, Config: later, Company: Company{Seeds: true}}, "strait-believe is not set to pinned"},
	} {
		ps := c.o.Problems("a")
		switch {
		case c.message == "" && len(ps) > 0:
			t.Errorf("%s: %v", name, ps)
		case c.message == "":
		case len(ps) != 1 || !ps[0].Warning || ps[0].Code != "STR8105" || !strings.Contains(ps[0].String(), c.message) || !strings.Contains(ps[0].Try, "authority.mode: off"):
			t.Errorf("%s: %v, want a warning with %q", name, ps, c.message)
		}
	}
}

// TestLacks: the leader makes the root, its own pin once it has the root, and restricts trust to pins when
// that cuts off no cluster.
func TestLacks(t *testing.T) {
	root := authority.PrivateKey{1}
	own := authority.Pin{Cluster: "a", Nodes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	base := Open{TrustsAll: true, Kubernetes: true, Config: Config{Signs: true, Pins: true, Later: true, Make: true}}
	edited := func(edit func(*Open)) Open { o := base; edit(&o); return o }
	pinned := func(edit func(*Open)) Open { o := base; o.Pinned, o.Known = true, 1; edit(&o); return o }
	for name, c := range map[string]struct {
		o         Open
		undecided bool
		root      string
		own       authority.Pin
		want      string
	}{
		"not its task":                  {edited(func(o *Open) { o.Make = false }), true, "", own, ""},
		"no root":                       {base, true, "", own, "root"},
		"a root, and seeds":             {edited(func(o *Open) { o.Seeds = true }), true, root.Base64(), own, "pins"},
		"a root":                        {base, true, root.Base64(), own, "pins"},
		"garbage for a root":            {base, true, "garbage", own, ""},
		"all is set":                    {base, false, "", own, ""},
		"alone, all signed":             {pinned(func(*Open) {}), true, root.Base64(), own, "pinned"},
		"no root is lent":               {pinned(func(*Open) {}), true, "", own, ""},
		"a node does not sign":          {pinned(func(o *Open) { o.Unsigned = []string{"a/n1"} }), true, root.Base64(), own, ""},
		"pods that no signer certifies": {pinned(func(o *Open) { o.Outside = []string{"x"} }), true, root.Base64(), own, ""},
		"another cluster is there":      {pinned(func(o *Open) { o.Unpinned = []string{"b"} }), true, root.Base64(), own, ""},
		"joined, and never heard":       {pinned(func(o *Open) { o.Seeds = true }), true, root.Base64(), own, ""},
		"joined and pinned":             {pinned(func(o *Open) { o.Seeds, o.Known = true, 2 }), true, root.Base64(), own, "pinned"},
		"joined, and one is not pinned": {pinned(func(o *Open) { o.Seeds, o.Known, o.Unpinned = true, 2, []string{"c"} }), true, root.Base64(), own, ""},
		"all, set by a person":          {pinned(func(*Open) {}), false, root.Base64(), own, ""},
	} {
		m, got := c.o.Lacks(c.undecided, c.root, c.own), ""
		switch {
		case m.Root:
			got = "root"
		case m.Pinned:
			got = "pinned"
		case m.Pins != "":
			got = "pins"
			if pins, err := authority.ParsePins([]byte(m.Pins)); err != nil || !slices.Equal(pins["a"].Roots, []authority.PublicKey{root.Public()}) {
				t.Errorf("%s: %v, %v", name, pins, err)
			}
		}
		if got != c.want {
			t.Errorf("%s: makes %q, want %q", name, got, c.want)
		}
	}
}

// TestOwnPin: it has room for all prefixes of the cluster's nodes, whatever allocates their pods' addresses.
func TestOwnPin(t *testing.T) {
	prefix := netip.MustParsePrefix
	node := func(name, addr string, prefixes ...string) clustermesh.Node {
		n := clustermesh.Node{Name: clustermesh.NodeName(name), Addresses: []netip.Addr{netip.MustParseAddr(addr)}}
		for _, p := range prefixes {
			n.Prefixes = append(n.Prefixes, prefix(p))
		}
		return n
	}
	record := node("n1", "192.0.2.1", "10.1.1.0/24", "192.168.7.9/32", "fd00:1::7/128")
	s := clustermesh.State{Records: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{
		{Cluster: "a", Node: "n1"}: {Content: clustermesh.Content{Node: &record}},
		{Cluster: "b", Node: "m1"}: {Content: clustermesh.Content{Node: &clustermesh.Node{Prefixes: []netip.Prefix{prefix("10.2.0.0/24")}}}},
	})}
	nodes := []clustermesh.Node{node("n1", "192.0.2.1", "10.1.1.0/24"), node("n2", "192.0.77.1", "10.1.2.0/24")}
	pin := OwnPin("a", "uid", nodes, s)
	if want := []netip.Prefix{prefix("10.1.0.0/16"), prefix("192.168.0.0/16"), prefix("fd00:1::/48")}; !slices.Equal(pin.Pods, want) {
		t.Errorf("pods %v, want %v", pin.Pods, want)
	}
	if len(pin.Nodes) > 0 || pin.UID != "uid" {
		t.Errorf("%+v: a node of the next subnet would not be trusted", pin)
	}
	if out := Outside("a", pin, nodes, s); len(out) > 0 {
		t.Errorf("outside are %q", out)
	}
	pin.Pods = pin.Pods[:1]
	if out := Outside("a", pin, nodes, s); !slices.Equal(out, []string{"192.168.7.9/32 of node n1", "fd00:1::7/128 of node n1"}) {
		t.Errorf("outside are %q", out)
	}
}

// TestUnpinnedConfig: the configuration of a cluster that is not pinned is ignored, and a Problem
// reports that.
func TestUnpinnedConfig(t *testing.T) {
	names := func(list ...clustermesh.ClusterName) []clustermesh.ClusterName { return list }
	for what, c := range map[string]struct {
		members []clustermesh.ClusterName
		want    []string
	}{
		"pinned":     {names("own", "c1", "c2"), nil},
		"one is not": {names("own", "c2"), []string{"cluster c1"}},
		"no pins":    {nil, []string{"cluster c1", "cluster c2"}},
	} {
		var got []string
		for _, p := range UnpinnedConfig(names("c1", "c2"), c.members) {
			if got = append(got, p.Object); p.Code != problem.ConfigNotPinned || p.Try == "" || p.Warning {
				t.Errorf("%s: %+v", what, p)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: problems of %q, want %q", what, got, c.want)
		}
	}
}

// TestPins: the pins must list the own cluster with its own root. They say which pod ranges other clusters
// have, and where this cluster may have endpoints.
func TestPins(t *testing.T) {
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, text := range texts {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	root, other := authority.PrivateKey{1}, authority.PrivateKey{2}
	pin := func(c clustermesh.ClusterName, root authority.PrivateKey, pods ...string) authority.Pin {
		return authority.Pin{Cluster: c, Roots: []authority.PublicKey{root.Public()}, Pods: prefixes(pods...)}
	}
	west := pin("west", root, "10.1.0.0/16")
	west.Endpoints = prefixes("192.0.2.0/24")
	pins := authority.Pins{"west": west, "east": pin("east", other, "10.3.0.0/16", "10.2.0.0/16")}
	text := string(pins.Encode())
	for message, err := range map[string]error{
		"": second(ParsePins(text, "west", &root)), "does not list this cluster, north": second(ParsePins(text, "north", nil)),
		"not " + other.Public().Fingerprint(): second(ParsePins(text, "west", &other)),
	} {
		if message == "" && err != nil || message != "" && (err == nil || !strings.Contains(err.Error(), message)) {
			t.Errorf("%v, want %q", err, message)
		}
	}
	want := []plan.Remote{{Cluster: "east", Range: prefixes("10.2.0.0/16")[0]}, {Cluster: "east", Range: prefixes("10.3.0.0/16")[0]}}
	if got := Remotes(pins, "west"); !slices.Equal(got, want) {
		t.Errorf("remote ranges %v, want %v", got, want)
	}
	if got := Nodeless(pins, "west", false); !slices.Equal(got, prefixes("10.1.0.0/16", "192.0.2.0/24")) {
		t.Errorf("endpoints can be in %v", got)
	}
	if Nodeless(pins, "west", true) != nil || Nodeless(nil, "west", false) != nil {
		t.Error("endpoints are bounded although every holder of the gossip key is trusted, or nothing is pinned")
	}
}

func second(_ authority.Pins, err error) error { return err }

// TestLentRoot: only a root that the cluster pins for itself can be used.
func TestLentRoot(t *testing.T) {
	root, other := authority.PrivateKey{1}, authority.PrivateKey{2}
	pinned := []authority.PublicKey{root.Public()}
	for _, c := range []struct {
		text    string
		has     bool
		message string
	}{{"", false, ""}, {root.Base64(), true, ""}, {other.Base64(), false, "does not pin it"}, {"garbage", false, "the root that is lent"}} {
		got, err := LentRoot(c.text, pinned)
		if (got != nil) != c.has || (err != nil) != (c.message != "") || err != nil && !strings.Contains(err.Error(), c.message) {
			t.Errorf("%q: %v, %v", c.text, got != nil, err)
		}
	}
}
