package netfilter_test

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/netfilter"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// sources are those of the node in the path.
func sources() datapath.Sources {
	return datapath.Sources{
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24"), netip.MustParsePrefix("fd00:1::/64")},
		Node:     netip.MustParseAddr(nodeInside),
	}
}

func newTable(t *testing.T) *netfilter.Table {
	t.Helper()
	return netfilter.New(netfilter.Config{Device: device, Log: testutil.Logger(t)})
}

// iptables runs a command for IPv4 and IPv6, as CNIs do.
func iptables(t *testing.T, kind string, pods4, pods6 string) {
	t.Helper()
	for tool, pods := range map[string]string{"iptables": pods4, "ip6tables": pods6} {
		tool += "-" + kind
		if _, err := exec.LookPath(tool); err != nil {
			testutil.Missing(t, "needs "+tool+": install the package iptables")
		}
		out, err := exec.Command(tool, "-w", "-t", "nat", "-A", "POSTROUTING", "-s", pods, "-j", "MASQUERADE").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", tool, err, out)
		}
	}
}

// nft masquerades as a CNI that speaks nf_tables itself, with no program.
func nft(t *testing.T) {
	t.Helper()
	var c nftables.Conn
	table := c.AddTable(&nftables.Table{Name: "cni", Family: nftables.TableFamilyINet})
	chain := c.AddChain(&nftables.Chain{
		Name: "post", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Masq{}}})
	must(t, c.Flush())
}

// TestPodKeepsItsAddress is what the package is for, against each way in which CNIs netfilter.
func TestPodKeepsItsAddress(t *testing.T) {
	for name, masquerades := range map[string]func(*testing.T){
		"nftables":        nft,
		"iptables-nft":    func(t *testing.T) { iptables(t, "nft", "10.1.1.0/24", "fd00:1::/64") },
		"iptables-legacy": func(t *testing.T) { iptables(t, "legacy", "10.1.1.0/24", "fd00:1::/64") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath(t)
			p.sees(t, far4, pod4)
			p.sees(t, far6, pod6)
			masquerades(t)
			p.sees(t, far4, nodeOuter4)
			p.sees(t, far6, nodeOuter6)

			table := newTable(t)
			must(t, problem.Strict(table.Reconcile(sources(), false)))
			p.sees(t, far4, pod4)
			p.sees(t, far6, pod6)

			must(t, problem.Strict(table.Reconcile(datapath.Sources{}, false))) // unknown is not empty
			p.sees(t, far4, pod4)
			must(t, problem.Strict(table.Reconcile(datapath.Sources{}, true)))
			p.sees(t, far4, nodeOuter4)
			p.sees(t, far6, nodeOuter6)
		})
	}
}

// TestOthersGetTheNodesAddress: a client that is no pod of this node has a source that the peer would drop.
func TestOthersGetTheNodesAddress(t *testing.T) {
	p := newPath(t)
	nft(t)
	table := newTable(t)
	only := sources()
	only.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.1.1.128/25"), netip.MustParsePrefix("fd00:1::8000/113")}
	must(t, problem.Strict(table.Reconcile(only, true)))
	p.sees(t, far4, nodeInside)
	p.sees(t, far6, nodeOuter6) // the node has no address of this family inside: the masquerade goes on

	only.Node = netip.Addr{}
	must(t, problem.Strict(table.Reconcile(only, true)))
	p.sees(t, far4, nodeOuter4)
}

// TestOtherDevicesAreLeftAlone: what leaves by another device than the tunnel is masqueraded as ever.
func TestOtherDevicesAreLeftAlone(t *testing.T) {
	p := newPath(t)
	nft(t)
	table := netfilter.New(netfilter.Config{Device: "strait-other"})
	must(t, problem.Strict(table.Reconcile(sources(), true)))
	p.sees(t, far4, nodeOuter4)
	must(t, problem.Strict(newTable(t).Reconcile(sources(), true)))
	p.sees(t, far4, pod4)
}

func TestReconcileWritesOnlyDifferences(t *testing.T) {
	testutil.NetNS(t)
	var many []netip.Prefix
	for i := range 2000 { // more than a message holds, and no two touch
		many = append(many, netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 14: byte(i / 100), 15: byte(i % 100 * 2)}), 128))
	}
	for name, ps := range map[string][]string{
		"touching":   {"10.1.1.0/24", "10.1.2.0/24", "fd00:1::/65", "fd00:1:0:0:8000::/65"},
		"nested":     {"10.1.0.0/16", "10.1.2.7/32", "fd00:1::/64", "fd00:1::1/128"},
		"to the end": {"255.255.255.255/32", "ffff::/16"},
		"all":        {"0.0.0.0/0", "::/0"},
		"one family": {"10.1.1.0/24"},
		"many":       nil,
	} {
		want := datapath.Sources{Node: netip.MustParseAddr(nodeInside)}
		for _, p := range ps {
			want.Prefixes = append(want.Prefixes, netip.MustParsePrefix(p))
		}
		if ps == nil {
			want.Prefixes = many
		}
		must(t, problem.Strict(newTable(t).Reconcile(want, true)))
		if marked(t) {
			t.Errorf("%s: nothing was written", name)
		}
		mark(t)
		must(t, problem.Strict(newTable(t).Reconcile(want, false))) // as a daemon that restarted
		if !marked(t) {
			t.Errorf("%s: the same was written again", name)
		}
	}
}

func TestWatchAndRestore(t *testing.T) {
	p := newPath(t)
	nft(t)
	table := newTable(t)
	must(t, problem.Strict(table.Reconcile(sources(), true)))
	changed := p.node.Watch(t, table.Watch)

	// Other people's tables and our own writes are no news.
	var c nftables.Conn
	c.AddTable(&nftables.Table{Name: "foreign", Family: nftables.TableFamilyINet})
	must(t, c.Flush())
	less := sources()
	less.Prefixes = less.Prefixes[:1]
	must(t, problem.Strict(table.Reconcile(less, true)))
	must(t, problem.Strict(table.Reconcile(sources(), true)))
	if testutil.Signalled(changed, 300*time.Millisecond) {
		t.Error("a signal although nothing was lost")
	}

	strait := &nftables.Table{Name: "strait", Family: nftables.TableFamilyINet}
	for name, breakIt := range map[string]func(){
		"everything": func() { c.FlushRuleset() },
		"the table":  func() { c.DelTable(strait) },
		"all rules":  func() { c.FlushTable(strait) },
		"one rule": func() {
			rules, err := c.GetRules(strait, &nftables.Chain{Name: "postrouting", Table: strait})
			must(t, err)
			must(t, c.DelRule(rules[1]))
		},
		"one rule about segments": func() {
			rules, err := c.GetRules(strait, &nftables.Chain{Name: "forward", Table: strait})
			must(t, err)
			must(t, c.DelRule(rules[0]))
		},
		"the filter": func() {
			rules, err := c.GetRules(strait, &nftables.Chain{Name: "filterinput", Table: strait})
			must(t, err)
			must(t, c.DelRule(rules[len(rules)-1]))
		},
		"an element": func() {
			must(t, c.SetDeleteElements(&nftables.Set{Table: strait, Name: "pods4"}, []nftables.SetElement{
				{Key: []byte{10, 1, 1, 0}}, {Key: []byte{10, 1, 2, 0}, IntervalEnd: true},
			}))
		},
		"a foreign rule in it": func() {
			c.InsertRule(&nftables.Rule{Table: strait, Chain: &nftables.Chain{Name: "postrouting", Table: strait},
				Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}})
		},
	} {
		breakIt()
		must(t, c.Flush())
		if !testutil.Signalled(changed, 5*time.Second) {
			t.Errorf("%s: no signal", name)
		}
		must(t, problem.Strict(table.Reconcile(sources(), true)))
		if name == "everything" {
			nft(t)
		}
		p.sees(t, far4, pod4)
		for testutil.Signalled(changed, 100*time.Millisecond) { // of what came before the repair
		}
	}
}

func TestCleanUp(t *testing.T) {
	testutil.NetNS(t)
	must(t, netfilter.CleanUp()) // nothing there
	nft(t)
	must(t, problem.Strict(newTable(t).Reconcile(sources(), true)))
	for range 2 {
		must(t, netfilter.CleanUp())
		var c nftables.Conn
		tables, err := c.ListTables()
		must(t, err)
		if len(tables) != 1 || tables[0].Name != "cni" {
			t.Errorf("tables left: %v, want the CNI's alone", tables)
		}
	}
}

// TestPeopleCanReadIt: nft lists the rules with their comments, as docs/ports.md tells people to look.
func TestPeopleCanReadIt(t *testing.T) {
	tool, err := exec.LookPath("nft")
	if err != nil {
		testutil.Missing(t, "needs nft: install the package nftables")
	}
	testutil.NetNS(t)
	want := sources()
	want.Port = 7946
	must(t, problem.Strict(newTable(t).Reconcile(want, true)))
	out, err := exec.Command(tool, "list", "table", "inet", "strait").CombinedOutput()
	must(t, err)
	for _, want := range []string{
		"elements = { 10.1.1.0/24 }", "elements = { fd00:1::/64 }", "type nat hook postrouting priority srcnat - 10;",
		`oifname != "strait0" return comment "only what enters strait0"`, "snat ip to ip saddr", "snat ip6 to ip6 saddr", "snat ip to 10.1.1.1",
		"type filter hook forward priority mangle;", `oifname "strait0" tcp flags syn tcp option maxseg size set rt mtu comment "TCP segments fit into strait0"`,
		`iifname "strait0" tcp flags syn tcp option maxseg size set rt mtu`,
		`ct state established,related return comment "answers pass"`, `ip daddr != @pods4 counter packets 0 bytes 0 drop`,
		`ip6 daddr != @pods6 counter packets 0 bytes 0 drop`, `ip daddr 10.1.1.1 tcp dport 7946 return`,
		`ip daddr 10.1.1.1 icmp type echo-request return`, `counter packets 0 bytes 0 drop comment "all else does not reach the node"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nft does not show %s in\n%s", want, out)
		}
	}
}
