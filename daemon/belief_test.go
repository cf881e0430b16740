package daemon

import (
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/notify"
)

// TestEverybodyBelieved: who believes everybody says so, with what to do, unless that was asked for or nobody
// else is there.
func TestEverybodyBelieved(t *testing.T) {
	later := AuthorityConfig{PinsFile: "/p", BelieveFile: "/b"}
	for name, c := range map[string]struct {
		o    open
		says string
	}{
		"alone, outside Kubernetes":           {open{Everybody: true}, ""},
		"off":                                 {open{Everybody: true, Authority: AuthorityConfig{Mode: AuthorityOff}, company: company{Seeds: true}}, ""},
		"pinned":                              {open{Authority: AuthorityConfig{PinsFile: "/p"}, Pins: true, company: company{Seeds: true}}, ""},
		"seeds":                               {open{Everybody: true, company: company{Seeds: true}}, "neither keys nor pins"},
		"another node":                        {open{Everybody: true, company: company{Nodes: true}}, "strait clusterset init"},
		"another cluster":                     {open{Everybody: true, company: company{Nodes: true, Strangers: []string{"b"}}}, "neither keys nor pins"},
		"a root alone":                        {open{Everybody: true, Authority: AuthorityConfig{RootFile: "/r"}, company: company{Seeds: true}}, "set authority.pinsFile"},
		"all, said for good":                  {open{Everybody: true, Pins: true, Authority: AuthorityConfig{PinsFile: "/p", Believe: BelieveAll}, company: company{Seeds: true}}, "authority.believe says all"},
		"Kubernetes, without authority":       {open{Everybody: true, Kubernetes: true}, "strait clusterset connect"},
		"its keys are being made":             {open{Everybody: true, Kubernetes: true, Authority: later, Age: time.Minute}, ""},
		"its keys were not made":              {open{Everybody: true, Kubernetes: true, Authority: later, Age: openGrace}, "which its leader makes"},
		"an upgrade, with another cluster":    {open{Everybody: true, Kubernetes: true, Pins: true, Known: 1, Authority: later, company: company{Strangers: []string{"b"}}}, "b is not pinned"},
		"an upgrade, the other is not heard":  {open{Everybody: true, Kubernetes: true, Pins: true, Known: 1, Authority: later, company: company{Seeds: true}}, "none of them is pinned"},
		"many":                                {open{Everybody: true, Kubernetes: true, Pins: true, Known: 1, Authority: later, company: company{Strangers: []string{"b", "c", "d", "e"}}}, "b, c, d and 1 more are not pinned"},
		"pinned, and not all sign":            {open{Everybody: true, Kubernetes: true, Pins: true, Known: 2, Authority: later, company: company{Seeds: true, Unsigned: []string{"b/n1"}}}, "b/n1 is not signed yet"},
		"pods that nobody would state":        {open{Everybody: true, Kubernetes: true, Pins: true, Known: 2, Authority: later, company: company{Seeds: true, Outside: []string{"10.9.0.0/16 of node n1"}}}, "not in the pinned pods"},
		"pinned, signed, and nobody leads it": {open{Everybody: true, Kubernetes: true, Pins: true, Known: 2, Authority: later, company: company{Seeds: true}}, "strait-believe does not say pinned"},
	} {
		ps := c.o.problems("a")
		switch {
		case c.says == "" && len(ps) > 0:
			t.Errorf("%s: %v", name, ps)
		case c.says == "":
		case len(ps) != 1 || !ps[0].Warning || ps[0].Code != "STR8105" || !strings.Contains(ps[0].String(), c.says) || !strings.Contains(ps[0].Try, "authority.mode: off"):
			t.Errorf("%s: %v, want a warning with %q", name, ps, c.says)
		}
	}
}

// TestLacks: the leader makes the root, the own pin when the root has come to it, and has only pins count when
// that cuts nobody off.
func TestLacks(t *testing.T) {
	root := authority.PrivateKey{1}
	own := authority.Pin{Cluster: "a", Nodes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	base := open{Everybody: true, Kubernetes: true, Authority: AuthorityConfig{PinsFile: "/p", BelieveFile: "/b", Make: &MakeConfig{"s", "p", "b"}}}
	edited := func(edit func(*open)) open { o := base; edit(&o); return o }
	pinned := func(edit func(*open)) open { o := base; o.Pins, o.Known = true, 1; edit(&o); return o }
	for name, c := range map[string]struct {
		o      open
		unsaid bool
		root   string
		own    authority.Pin
		want   string
	}{
		"not its task":                  {edited(func(o *open) { o.Authority.Make = nil }), true, "", own, ""},
		"no root":                       {base, true, "", own, "root"},
		"a root, and seeds":             {edited(func(o *open) { o.Seeds = true }), true, root.Base64(), own, "pins"},
		"a root":                        {base, true, root.Base64(), own, "pins"},
		"garbage for a root":            {base, true, "garbage", own, ""},
		"all is said":                   {base, false, "", own, ""},
		"alone, all signed":             {pinned(func(*open) {}), true, root.Base64(), own, "pinned"},
		"no root is lent":               {pinned(func(*open) {}), true, "", own, ""},
		"a node does not sign":          {pinned(func(o *open) { o.Unsigned = []string{"a/n1"} }), true, root.Base64(), own, ""},
		"pods that nobody would state":  {pinned(func(o *open) { o.Outside = []string{"x"} }), true, root.Base64(), own, ""},
		"another cluster is there":      {pinned(func(o *open) { o.Strangers = []string{"b"} }), true, root.Base64(), own, ""},
		"joined, and never heard":       {pinned(func(o *open) { o.Seeds = true }), true, root.Base64(), own, ""},
		"joined and pinned":             {pinned(func(o *open) { o.Seeds, o.Known = true, 2 }), true, root.Base64(), own, "pinned"},
		"joined, and one is not pinned": {pinned(func(o *open) { o.Seeds, o.Known, o.Strangers = true, 2, []string{"c"} }), true, root.Base64(), own, ""},
		"somebody said all":             {pinned(func(*open) {}), false, root.Base64(), own, ""},
	} {
		m, got := c.o.lacks(c.unsaid, c.root, c.own), ""
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

// TestOwnPin: it has room for all that the cluster's nodes say, whatever gives out their pods' addresses.
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
	s := clustermesh.State{Records: map[clustermesh.Origin]clustermesh.Record{
		{Cluster: "a", Node: "n1"}: {Content: clustermesh.Content{Node: &record}},
		{Cluster: "b", Node: "m1"}: {Content: clustermesh.Content{Node: &clustermesh.Node{Prefixes: []netip.Prefix{prefix("10.2.0.0/24")}}}},
	}}
	nodes := []clustermesh.Node{node("n1", "192.0.2.1", "10.1.1.0/24"), node("n2", "192.0.77.1", "10.1.2.0/24")}
	pin := ownPin("a", "uid", nodes, s)
	if want := []netip.Prefix{prefix("10.1.0.0/16"), prefix("192.168.0.0/16"), prefix("fd00:1::/48")}; !slices.Equal(pin.Pods, want) {
		t.Errorf("pods %v, want %v", pin.Pods, want)
	}
	if len(pin.Nodes) > 0 || pin.UID != "uid" {
		t.Errorf("%+v: a node of the next subnet would not be believed", pin)
	}
	if out := outside("a", pin, nodes, s); len(out) > 0 {
		t.Errorf("outside are %q", out)
	}
	pin.Pods = pin.Pods[:1]
	if out := outside("a", pin, nodes, s); !slices.Equal(out, []string{"192.168.7.9/32 of node n1", "fd00:1::7/128 of node n1"}) {
		t.Errorf("outside are %q", out)
	}
}

// believing is a replication that only notes whom to believe.
type believing struct {
	repinned
	everybody []bool
}

func (b *believing) Believe(everybody bool) { b.everybody = append(b.everybody, everybody) }

// TestBelieveLater: pins and the word that only they count come while the daemon runs. Afterwards neither goes
// by accident, over restarts too; by the word all, they do.
func TestBelieveLater(t *testing.T) {
	root := authority.PrivateKey{1}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	c := Config{StateDir: file("state"), Authority: AuthorityConfig{PinsFile: file("pins.yaml"), TokenFile: "/t", BelieveFile: file("believe")}}
	life := func() (*Daemon, *believing) {
		t.Helper()
		g := &believing{}
		d := &Daemon{config: c, log: slog.New(slog.DiscardHandler), kube: noServer{}, gossip: g, who: who{Cluster: "west"}}
		d.files = d.watchFiles(c, notify.New())
		var err error
		if d.keys, err = loadKeys(c); err != nil {
			t.Fatal(err)
		}
		a, err := d.authority("west")
		if err != nil || a.Lax != d.trust.everybody {
			t.Fatalf("%+v, everybody %v, %v", a, d.trust.everybody, err)
		}
		return d, g
	}
	turn := func(d *Daemon, what string, everybody bool, problems int) {
		t.Helper()
		d.files.pins.Source().Look()
		d.files.believe.Look()
		ps := slices.Concat(d.followPins(), d.believe())
		if d.trust.everybody != everybody || len(ps) != problems || (d.trust.members == nil) != everybody {
			t.Errorf("%s: everybody %v, members %v, problems %v", what, d.trust.everybody, d.trust.members, ps)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, g := life()
	turn(d, "nothing", true, 0)
	write("believe", "pinned\n")
	turn(d, "the word without pins", true, 0)
	write("believe", "nobody")
	turn(d, "another word", true, 1)
	if err := os.Remove(file("believe")); err != nil {
		t.Fatal(err)
	}
	write("pins.yaml", string(authority.Pins{"west": {Cluster: "west", Roots: []authority.PublicKey{root.Public()}}}.Encode()))
	turn(d, "pins", true, 0)
	write("believe", "pinned")
	turn(d, "pins and the word", false, 0)
	if !slices.Equal(g.everybody, []bool{false}) || len(g.pins) != 1 {
		t.Errorf("gossip was told %v, and of %d pins", g.everybody, len(g.pins))
	}
	for _, name := range []string{"pins.yaml", "believe"} {
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	turn(d, "without the files", false, 1)
	d, _ = life()
	turn(d, "after a restart without the files", false, 1)
	write("believe", "all")
	turn(d, "the word all", true, 1)
	if err := os.Remove(file("believe")); err != nil {
		t.Fatal(err)
	}
	if d, _ = life(); !d.trust.everybody {
		t.Error("after the word all, and a restart, only the pinned are believed")
	}
	if b, wrong := whom("", fs.ErrNotExist, ""); b != BelieveAll || wrong != nil {
		t.Errorf("%v %v", b, wrong)
	}
}
