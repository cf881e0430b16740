package table

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/l4"
)

// TestRowsFitTheirHeaders: one cell per column, none empty, for the zero value of every list in
// both forms.
func TestRowsFitTheirHeaders(t *testing.T) {
	for _, f := range []Form{{}, {Wide: true}} {
		fits(t, Clusters, f, api.Cluster{Name: "a"})
		fits(t, Services, f, api.Service{Name: "a/b"})
		fits(t, Backends, f, api.Backend{Service: "a/b", Endpoint: api.Endpoint{Cluster: "a"}})
		fits(t, Nodes, f, api.Node{Cluster: "a", Tunnel: &api.Tunnel{}}, api.Node{})
		fits(t, Members, f, api.Member{Cluster: "a"}, api.Member{Cluster: "a", Node: "n"})
		fits(t, Policies, f, api.Policy{Name: "p"})
		fits(t, Peers, f, api.Guest{Name: "g", Range: make([]netip.Prefix, 1)}, api.Guest{Name: "g", Tunnel: &api.Tunnel{}})
		fits(t, Moved, f, api.Moved{Service: "a/b", Before: "x", After: "y"})
	}
}

func fits[T any](t *testing.T, table Table[T], f Form, items ...T) {
	t.Helper()
	header := table.Header(f)
	for _, row := range table.Rows(items, time.Time{}, f) {
		if len(header) != len(row) {
			t.Errorf("%T: %d columns, %d cells", items, len(header), len(row))
		}
		for i, cell := range row {
			if cell == "" {
				t.Errorf("%T: column %s is empty", items, header[i])
			}
		}
	}
}

// TestCompare: items that are new or look different are rows, and those that are not there any more
// are gone. What only moves is no change, and items that share a name change together.
func TestCompare(t *testing.T) {
	node := func(name, contact string, heard time.Time, rtt float64) api.Node {
		return api.Node{Cluster: "a", Name: name, Contact: contact, Heard: heard, Tunnel: &api.Tunnel{State: "carrying", RTT: rtt, Handshake: heard}}
	}
	now := time.Unix(1, 0)
	before := []api.Node{node("n1", "alive", now, 1), node("n2", "alive", now, 1), node("n3", "alive", now, 1)}
	after := []api.Node{node("n1", "alive", now.Add(time.Second), 2), node("n2", "quiet", now, 1), node("n4", "alive", now, 1)}
	got := Nodes.Compare(before, after, Form{Wide: true})
	if names := Nodes.Names(got.Rows); !reflect.DeepEqual(names, []string{"a/n2", "a/n4"}) || !reflect.DeepEqual(got.Gone, []string{"a/n3"}) {
		t.Errorf("rows %q, gone %q", names, got.Gone)
	}
	after[0].Tunnel.State = "silent"
	if got := Nodes.Compare(before[:1], after[:1], Form{}); len(got.Rows) != 1 {
		t.Error("a tunnel that carries nothing any more is no change")
	}
	at := func(frontend string, share float64) api.Backend {
		f, err := l4.Parse(frontend)
		if err != nil {
			t.Fatal(err)
		}
		return api.Backend{Frontend: f, Endpoint: api.Endpoint{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Share: share}}
	}
	two := []api.Backend{at("241.0.0.1:80/TCP", 1), at("241.0.0.1:81/TCP", 1)}
	if got := Backends.Compare(two, two[:1], Form{}); len(got.Rows) != 1 || len(got.Gone) != 0 {
		t.Errorf("a row less of a backend: %+v", got)
	}
	if names := Backends.Names(two); len(names) != 1 {
		t.Errorf("one backend has the names %q", names)
	}
}

// TestExplainMarksTheLastResort: an endpoint that is not ready and in use is a warning, and one
// that is not in use is not.
func TestExplainMarksTheLastResort(t *testing.T) {
	rows := Explained.Rows(Candidates(api.Frontend{Endpoints: []api.Endpoint{
		{Tier: "node", Ready: false, Share: 1, Reason: "terminating"}, {Tier: "node", Ready: false, Reason: "not ready"}}}), time.Time{}, Form{})
	if got := rows[0][7] + ", " + rows[1][7]; got != "! terminating, ✗ not ready" {
		t.Errorf("%q", got)
	}
}

func TestServiceRowSaysWhereAndWhy(t *testing.T) {
	end := func(tier, cluster string, ready bool, share float64) api.Endpoint {
		return api.Endpoint{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Pod: fmt.Sprint(tier, cluster, ready, share), Tier: tier,
			Cluster: cluster, Ready: ready, Share: share, Reason: "node is dead"}
	}
	vip := l4.New(netip.MustParseAddr("241.0.0.1"), 80, l4.TCP)
	one := func(ends ...api.Endpoint) []api.Frontend {
		return []api.Frontend{{Addr: vip, InKernel: true, Endpoints: ends}}
	}
	for _, c := range []struct {
		name           string
		service        api.Service
		ready, to, why string
	}{
		{"nearest", api.Service{Frontends: one(end("clusterset", "b", true, 0), end("node", "a", true, 1))}, "2/2",
			"node 100 % (a)", "nearest tier with endpoints"},
		{"passed over", api.Service{Frontends: one(end("clusterset", "b", true, .5), end("clusterset", "c", true, .5),
			end("zone", "a", false, 0), end("node", "a", false, 0))}, "2/4", "clusterset 100 % (b c)", "node 0/1 ready, zone 0/1 ready"},
		{"spill", api.Service{Frontends: one(end("zone", "a", true, .93), end("cluster", "a", true, .07))}, "2/2",
			"zone 93 % · cluster 7 % (a)", "node is dead"}, // the reason of the first endpoint
		{"cluster without a share", api.Service{Frontends: one(end("clusterset", "b", true, 1), end("clusterset", "c", false, 0))}, "1/2",
			"clusterset 100 % (b)", "nearest tier with endpoints"},
		{"ready and barred", api.Service{Frontends: one(end("zone", "a", true, 0), end("cluster", "a", true, 1))}, "2/2",
			"cluster 100 % (a)", "zone: node is dead"},
		{"none ready", api.Service{Frontends: one(end("node", "a", false, 0))}, "0/1", "✗ nowhere", "node 0/1 ready: connections are refused"},
		{"nobody", api.Service{Frontends: one()}, "0/0", "✗ nowhere", "no endpoint anywhere: connections are refused"},
		{"kernel", api.Service{Frontends: []api.Frontend{{Addr: vip, Endpoints: []api.Endpoint{end("node", "a", true, 1)}}}}, "1/1", "node 100 % (a)",
			"✗ the kernel's map differs from the plan"},
		{"ports differ", api.Service{Name: "x/y", Frontends: append(one(end("node", "a", true, 1)), one()...)}, "1/1",
			"! differs by port", "strait explain x/y"},
		{"headless", api.Service{Type: "Headless"}, "–", "–", "names resolve to the pods"},
		{"not programmed", api.Service{Type: "ClusterSetIP"}, "–", "✗ nowhere", "no frontend is programmed: see strait status"},
	} {
		row := Services.Rows([]api.Service{c.service}, time.Time{}, Form{})[0]
		if got := row[4:]; !reflect.DeepEqual(got, []string{c.ready, c.to, c.why}) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestReadyCountsPodsOnce(t *testing.T) {
	end := func(addr, pod string, ready bool) api.Endpoint {
		return api.Endpoint{Cluster: "a", Pod: pod, Addr: netip.MustParseAddrPort(addr), Ready: ready}
	}
	s := api.Service{Frontends: []api.Frontend{
		{Addr: l4.New(netip.MustParseAddr("241.0.0.1"), 80, l4.TCP), Endpoints: []api.Endpoint{end("10.0.0.1:80", "p", true),
			end("10.0.0.2:80", "q", true), end("10.0.0.3:80", "", true), end("10.0.0.4:80", "r", false)}},
		{Addr: l4.New(netip.MustParseAddr("241.0.0.1"), 81, l4.TCP), Endpoints: []api.Endpoint{end("10.0.0.1:81", "p", true),
			end("10.0.0.2:81", "q", false), end("10.0.0.3:81", "", true), end("10.0.0.4:81", "r", true)}},
	}}
	if got := ready(s); got != "2/4" {
		t.Errorf("%s, want 2/4: q and r are each not ready on one port", got)
	}
}

// An endpoint counts for the addresses of its own IP family, behind which alone it can be.
func TestFamiliesOfAService(t *testing.T) {
	four, six := netip.MustParseAddr("241.0.0.1"), netip.MustParseAddr("fd00:5354::1")
	front := func(vip netip.Addr, ends ...api.Endpoint) api.Frontend {
		return api.Frontend{Addr: l4.New(vip, 80, l4.TCP), InKernel: true, Endpoints: ends}
	}
	pod := func(name, addr string, ready bool) api.Endpoint {
		e := api.Endpoint{Cluster: "a", Tier: "node", Pod: name, Addr: netip.MustParseAddrPort(addr), Ready: ready, Reason: "ready, in the nearest tier"}
		if ready {
			e.Share = 1
		}
		return e
	}
	barred := func(name, addr string) api.Endpoint {
		return api.Endpoint{Cluster: "a", Tier: "node", Pod: name, Addr: netip.MustParseAddrPort(addr), Reason: "is of the other family"}
	}
	for _, c := range []struct {
		name           string
		frontends      []api.Frontend
		ready, to, why string
	}{
		{"a pod of both families", []api.Frontend{
			front(four, pod("p", "10.0.0.1:80", true), barred("p", "[fd00::1]:80")),
			front(six, barred("p", "10.0.0.1:80"), pod("p", "[fd00::1]:80", true))}, "1/1", "node 100 % (a)", "nearest tier with endpoints"},
		{"one address is enough", []api.Frontend{front(four, pod("", "10.0.0.1:80", true), barred("", "[fd00::1]:80"))}, "1/1",
			"node 100 % (a)", "nearest tier with endpoints"},
		{"an address behind which nothing can be", []api.Frontend{
			front(four, pod("p", "10.0.0.1:80", true)), front(six, barred("p", "10.0.0.1:80"))}, "IPv4 1/1 · IPv6 0/0",
			"! differs by family", "strait explain x/y"},
		{"not ready by one family", []api.Frontend{
			front(four, pod("p", "10.0.0.1:80", true), barred("p", "[fd00::1]:80")),
			front(six, barred("p", "10.0.0.1:80"), pod("p", "[fd00::1]:80", false))}, "IPv4 1/1 · IPv6 0/1",
			"! differs by family", "strait explain x/y"},
		{"only the other family", []api.Frontend{front(six, barred("p", "10.0.0.1:80"))}, "0/0", "✗ nowhere",
			"no IPv6 endpoint anywhere: connections are refused"},
		{"not ready, beside the other family", []api.Frontend{front(four, pod("p", "10.0.0.1:80", false), barred("p", "[fd00::1]:80"))}, "0/1",
			"✗ nowhere", "node 0/1 ready: connections are refused"},
	} {
		s := api.Service{Name: "x/y", Type: "ClusterSetIP", Frontends: c.frontends}
		if got, want := Services.Rows([]api.Service{s}, time.Time{}, Form{})[0][4:], []string{c.ready, c.to, c.why}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

func TestNodeRowIsNarrow(t *testing.T) {
	n := api.Node{Cluster: strings.Repeat("c", 40), Name: strings.Repeat("n", 63), Contact: "alive", Zone: strings.Repeat("z", 40),
		Addresses: []netip.Addr{netip.MustParseAddr("2001:db8:1234:5678:9abc:def0:1234:5678"), netip.MustParseAddr("192.0.2.1")},
		Prefixes:  []netip.Prefix{netip.MustParsePrefix("2001:db8:1234:5678:9abc::/80"), netip.MustParsePrefix("10.0.0.0/24")},
		Tunnel:    &api.Tunnel{Underlay: netip.MustParseAddrPort("[2001:db8:1234:5678:9abc:def0:1234:9999]:51820"), Sent: math.MaxInt64, Received: 1}}
	n.ClusterIPs = n.Prefixes[1:]
	header := Nodes.Header(Form{})
	for i, cell := range Nodes.Rows([]api.Node{n}, time.Time{}, Form{})[0] {
		if header[i] == "PODS" && !strings.HasSuffix(cell, "/80 entry") {
			t.Errorf("PODS of an entry is %q", cell)
		}
		if width := len([]rune(cell)); width > nameWidth {
			t.Errorf("column %s is %d wide: %s", header[i], width, cell)
		}
	}
	for _, c := range []struct{ underlay, want string }{{"192.0.2.1:51820", ":51820"}, {"192.0.2.9:51820", "192.0.2.9:51820"}} {
		n := api.Node{Addresses: n.Addresses[1:], Tunnel: &api.Tunnel{Underlay: netip.MustParseAddrPort(c.underlay)}}
		if got := tunnelEnd(n); got != c.want {
			t.Errorf("tunnel to %s: %s, want %s", c.underlay, got, c.want)
		}
	}
}

func TestClusterTunnels(t *testing.T) {
	c := api.Cluster{Name: "a", Tunnels: &api.Tunnels{States: map[string]int{"never": 1, "carrying": 2}, RTT: 8.26}}
	row := Clusters.Rows([]api.Cluster{c}, time.Time{}, Form{Wide: true})[0]
	if got := strings.Join(row[7:], " · "); got != "2 carrying, 1 never · 8.3 ms" {
		t.Errorf("tunnels are shown as %q", got)
	}
}
