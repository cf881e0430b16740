package plan_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

var (
	serve = clustermesh.ServiceName{Namespace: "default", Name: "serve"}
	http  = clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: 80}
	cidr  = netip.MustParsePrefix("241.0.0.0/8")
	vip   = netip.MustParseAddr("241.1.2.3")
)

// clusterset is a fixture: clusters named a, b, c in regions of their own, two nodes each, one pod of
// serve on each node, exported everywhere. Mutate before use.
func clusterset() clustermesh.State {
	s := clustermesh.State{
		Records:  clustermesh.ByOrigin[clustermesh.Record]{},
		Contacts: clustermesh.ByOrigin[clustermesh.Contact]{},
	}
	for c, cluster := range []clustermesh.ClusterName{"a", "b", "c"} {
		s.Records = s.Records.With(clustermesh.Origin{Cluster: cluster}, clustermesh.Record{
			Origin: clustermesh.Origin{Cluster: cluster},
			Content: clustermesh.Content{
				Exports: []clustermesh.Export{{Service: serve, Type: clustermesh.ClusterSetIP,
					Ports: []clustermesh.ServicePort{http}, Created: int64(c)}},
				Allocations: []clustermesh.Allocation{{Service: serve, IP: vip}},
			},
		})
		for n := 1; n <= 2; n++ {
			o := clustermesh.Origin{Cluster: cluster, Node: clustermesh.NodeName(fmt.Sprintf("n%d", n))}
			inside := netip.AddrFrom4([4]byte{10, byte(c + 1), byte(n), 1})
			s.Contacts = s.Contacts.With(o, clustermesh.Alive)
			s.Records = s.Records.With(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: clustermesh.Content{
				Node: &clustermesh.Node{
					Name: o.Node, Locality: clustermesh.Locality{Region: string(cluster), Zone: fmt.Sprint(cluster, n)},
					Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 31, byte(c + 1), byte(n)})},
					Prefixes:  []netip.Prefix{netip.PrefixFrom(inside, 24).Masked()}, Inside: inside,
					PublicKey: key.Public{byte(c + 1), byte(n)}, WireGuardPort: 51820,
				},
				Endpoints: []clustermesh.Endpoint{{Service: serve, Addr: netip.AddrFrom4([4]byte{10, byte(c + 1), byte(n), 10}),
					Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
					Node:  o.Node, Ready: true, Serving: true}},
			}})
		}
	}
	return s
}

// edit replaces a record's content by what f makes of it.
func edit(s *clustermesh.State, cluster, node string, f func(*clustermesh.Content)) {
	o := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
	r := s.Records.Get(o)
	r.Content.Endpoints = slices.Clone(r.Content.Endpoints)
	r.Content.Exports = slices.Clone(r.Content.Exports)
	if r.Content.Node != nil {
		n := *r.Content.Node
		r.Content.Node = &n
	}
	f(&r.Content)
	s.Records = s.Records.With(o, r)
}

func unready(c *clustermesh.Content) { c.Endpoints[0].Ready, c.Endpoints[0].Serving = false, false }

func planFor(s clustermesh.State) plan.Result {
	return once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
}

func backends(r plan.Result) string {
	var out []string
	for _, f := range r.Desired.Frontends {
		for _, b := range f.Backends {
			out = append(out, b.AddrPort().String())
		}
	}
	return strings.Join(out, " ")
}

func TestPlanBackends(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*clustermesh.State)
		want   string
	}{
		{"own node", func(*clustermesh.State) {}, "10.1.1.10:8080"},
		{"own cluster", func(s *clustermesh.State) { edit(s, "a", "n1", unready) }, "10.1.2.10:8080"},
		{"other clusters", func(s *clustermesh.State) { edit(s, "a", "n1", unready); edit(s, "a", "n2", unready) },
			"10.2.1.10:8080 10.2.2.10:8080 10.3.1.10:8080 10.3.2.10:8080"},
		{"own cluster does not export", func(s *clustermesh.State) {
			edit(s, "a", "", func(c *clustermesh.Content) { c.Exports = nil })
		}, "10.2.1.10:8080 10.2.2.10:8080 10.3.1.10:8080 10.3.2.10:8080"},
		{"a held cluster keeps its backends", func(s *clustermesh.State) {
			edit(s, "a", "", func(c *clustermesh.Content) { c.Exports = nil })
			for _, n := range []clustermesh.NodeName{"n1", "n2"} {
				s.Contacts = s.Contacts.With(clustermesh.Origin{Cluster: "b", Node: n}, clustermesh.Held)
				s.Contacts = s.Contacts.With(clustermesh.Origin{Cluster: "c", Node: n}, clustermesh.Silent)
			}
		}, "10.2.1.10:8080 10.2.2.10:8080"},
		{"a dead node is withdrawn", func(s *clustermesh.State) {
			edit(s, "a", "", func(c *clustermesh.Content) { c.Exports = nil })
			b1 := clustermesh.Origin{Cluster: "b", Node: "n1"}
			s.Contacts = s.Contacts.With(b1, clustermesh.Silent)
			claim := func(c *clustermesh.Content) { c.Silent = []clustermesh.Silence{{Origin: b1, Epoch: 1}} }
			edit(s, "b", "n2", claim)
			edit(s, "c", "n1", claim)
		}, "10.2.2.10:8080 10.3.1.10:8080 10.3.2.10:8080"},
		{"another port number is another port", func(s *clustermesh.State) {
			edit(s, "a", "", func(c *clustermesh.Content) {
				c.Exports[0].Ports = []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 8888}}
			})
			edit(s, "b", "", func(c *clustermesh.Content) { c.Exports[0].Ports = c.Exports[0].Ports[:0] })
			edit(s, "c", "", func(c *clustermesh.Content) { c.Exports[0].Ports = c.Exports[0].Ports[:0] })
		}, "10.1.1.10:8080"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := clusterset()
			tc.change(&s)
			if got := backends(planFor(s)); got != tc.want {
				t.Errorf("backends\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestPlanEmptyFrontendStays(t *testing.T) {
	s := clusterset()
	for o, r := range s.Records.All() {
		if o.Node != "" {
			edit(&s, string(r.Origin.Cluster), string(o.Node), unready)
		}
	}
	r := planFor(s)
	if len(r.Desired.Frontends) != 1 || len(r.Desired.Frontends[0].Backends) != 0 {
		t.Fatalf("frontends %+v: want one that refuses", r.Desired.Frontends)
	}
	if got := r.Imports[0].Frontends()[0].Choice.Tier; got != locality.None {
		t.Errorf("tier %v", got)
	}
}

// TestPlanDark: endpoints behind a tunnel that carries nothing rank last, and stay if there is
// nothing else. The next plan notices when that changes.
func TestPlanDark(t *testing.T) {
	s := clusterset()
	for _, n := range []string{"n1", "n2"} {
		edit(&s, "a", n, unready)
	}
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	node := func(cluster, name string) clustermesh.Origin {
		return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(name)}
	}
	const why = "carries nothing since noon"
	all := "10.2.1.10:8080 10.2.2.10:8080 10.3.1.10:8080 10.3.2.10:8080"
	for _, c := range []struct {
		dark []clustermesh.Origin
		want string
	}{
		{nil, all},
		{[]clustermesh.Origin{node("b", "n1")}, "10.2.2.10:8080 10.3.1.10:8080 10.3.2.10:8080"},
		{[]clustermesh.Origin{node("b", "n1"), node("b", "n2"), node("c", "n1")}, "10.3.2.10:8080"},
		{[]clustermesh.Origin{node("b", "n1"), node("b", "n2"), node("c", "n1"), node("c", "n2")}, all},
		{nil, all},
	} {
		dark := map[clustermesh.Origin]plan.Fault{}
		for _, o := range c.dark {
			dark[o] = plan.Fault{Why: why}
		}
		p.Faults = dark
		r := p.plan(s)
		if got := backends(r); got != c.want {
			t.Errorf("%v dark: %s, want %s", c.dark, got, c.want)
		}
		for _, v := range r.Imports[0].Frontends()[0].Choice.Verdicts {
			if _, is := dark[clustermesh.Origin{Cluster: v.Cluster, Node: v.Node}]; is != strings.Contains(v.Reason, why) {
				t.Errorf("%v dark: the reason for %s is %q", c.dark, v.Addr, v.Reason)
			}
		}
	}
}

// TestPlanImpaired: endpoints behind a tunnel that carries only small packets come before those
// behind one that carries nothing, and after all others.
func TestPlanImpaired(t *testing.T) {
	s := clusterset()
	for _, n := range []string{"n1", "n2"} {
		edit(&s, "a", n, unready)
	}
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	for _, c := range []struct {
		dark, impaired []string
		want           string
	}{
		{nil, []string{"b/n1"}, "10.2.2.10:8080 10.3.1.10:8080 10.3.2.10:8080"},
		{[]string{"b/n2"}, []string{"b/n1", "c/n1", "c/n2"}, "10.2.1.10:8080 10.3.1.10:8080 10.3.2.10:8080"},
		{[]string{"b/n1", "b/n2", "c/n1"}, []string{"c/n2"}, "10.3.2.10:8080"},
		{nil, []string{"b/n1", "b/n2", "c/n1", "c/n2"}, "10.2.1.10:8080 10.2.2.10:8080 10.3.1.10:8080 10.3.2.10:8080"},
		{nil, nil, "10.2.1.10:8080 10.2.2.10:8080 10.3.1.10:8080 10.3.2.10:8080"},
	} {
		faults := map[clustermesh.Origin]plan.Fault{}
		for _, list := range []struct {
			nodes []string
			fault plan.Fault
		}{{c.impaired, plan.Fault{Why: "carries no packets of 1420 bytes", Impaired: true}}, {c.dark, plan.Fault{Why: "carries nothing"}}} {
			for _, n := range list.nodes {
				cluster, node, _ := strings.Cut(n, "/")
				faults[clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}] = list.fault
			}
		}
		p.Faults = faults
		r := p.plan(s)
		if got := backends(r); got != c.want {
			t.Errorf("%v dark, %v impaired: %s, want %s", c.dark, c.impaired, got, c.want)
		}
		for _, v := range r.Imports[0].Frontends()[0].Choice.Verdicts {
			name := fmt.Sprintf("%s/%s", v.Cluster, v.Node)
			is := slices.Contains(c.impaired, name) && !slices.Contains(c.dark, name)
			if is != strings.Contains(v.Reason, "carries no packets of 1420 bytes") {
				t.Errorf("%v impaired: the reason for %s is %q", c.impaired, v.Addr, v.Reason)
			}
		}
	}
}

func TestPlanMesh(t *testing.T) {
	r := planFor(clusterset())
	var peers []string
	for _, p := range r.Desired.Peers {
		peers = append(peers, fmt.Sprint(p.Name, " ", p.Underlay, " ", p.AllowedIPs))
	}
	want := []string{
		"b/n1 172.31.2.1:51820 [10.2.1.0/24]", "b/n2 172.31.2.2:51820 [10.2.2.0/24]",
		"c/n1 172.31.3.1:51820 [10.3.1.0/24]", "c/n2 172.31.3.2:51820 [10.3.2.0/24]",
	}
	if !slices.Equal(peers, want) {
		t.Errorf("peers %q", peers)
	}
	var routes []string
	for _, x := range r.Desired.Routes {
		routes = append(routes, fmt.Sprint(x.Dst, " ", x.Src, " ", x.Unreachable))
	}
	if want := []string{"10.2.1.0/24 10.1.1.1 false", "10.2.2.0/24 10.1.1.1 false", "10.3.1.0/24 10.1.1.1 false",
		"10.3.2.0/24 10.1.1.1 false", "241.0.0.0/8 invalid IP true"}; !slices.Equal(routes, want) {
		t.Errorf("routes %q", routes)
	}
}

func TestPlanSources(t *testing.T) {
	s := clusterset()
	edit(&s, "a", "n1", func(c *clustermesh.Content) {
		c.Node.Prefixes = []netip.Prefix{netip.MustParsePrefix("fd00:1::7/64"), netip.MustParsePrefix("10.1.1.9/24")}
	})
	want := datapath.Sources{
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.1.0/24"), netip.MustParsePrefix("fd00:1::/64")},
		Node:     netip.MustParseAddr("10.1.1.1"),
	}
	self, config := plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: true}
	if got := once(s, self, config).Desired.Sources; !reflect.DeepEqual(got, want) {
		t.Errorf("sources %+v, want %+v", got, want)
	}
	edit(&s, "a", "n1", func(c *clustermesh.Content) { c.Node.Inside = clustermesh.TunnelAddr(self.Origin(), false) })
	if got := once(s, self, config).Desired.Sources; !got.OnDevice {
		t.Errorf("the address that no other node bears: sources %+v", got)
	}
	if got := once(s, self, plan.Config{}).Desired.Sources; !reflect.DeepEqual(got, datapath.Sources{}) {
		t.Errorf("without a mesh: sources %+v", got)
	}
	if got := once(s, plan.Self{Cluster: "a", Node: "new"}, config).Desired.Sources; !reflect.DeepEqual(got, datapath.Sources{}) {
		t.Errorf("before the node has said anything: sources %+v", got)
	}
}

func TestPlanOverlappingPrefixes(t *testing.T) {
	s := clusterset()
	edit(&s, "b", "n1", func(c *clustermesh.Content) { c.Node.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")} })
	edit(&s, "c", "n2", func(c *clustermesh.Content) { c.Node.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.2.2.128/25")} })
	r := planFor(s)
	for _, p := range r.Desired.Peers {
		if p.Name == "b/n1" || p.Name == "b/n2" || p.Name == "c/n2" {
			t.Errorf("peer %s keeps %v", p.Name, p.AllowedIPs)
		}
	}
	if len(losses(r)) != 3 || len(warnings(r)) != 1 {
		t.Fatalf("problems %v", r.Problems)
	}
	for i, want := range []string{"node b/n1: prefixes: 10.1.0.0/16 overlaps 10.1.1.0/24 of node a/n1, which keeps it: ",
		"node b/n2: prefixes: 10.2.2.0/24 overlaps 10.2.2.128/25 of node c/n2, and it is not known whose it is: ",
		"node c/n2: prefixes: 10.2.2.128/25 overlaps 10.2.2.0/24 of node b/n2"} {
		if !strings.HasPrefix(r.Problems[i].String(), want) {
			t.Errorf("problem %q", r.Problems[i])
		}
	}
}

// Inside a cluster the longer prefix wins, as it does in the kernel; between clusters an overlap is
// a Problem.
func TestPlanNestedPrefixes(t *testing.T) {
	s := clusterset()
	claim := func(cluster, node string, prefixes ...string) {
		edit(&s, cluster, node, func(c *clustermesh.Content) {
			c.Node.Prefixes = nil
			for _, p := range prefixes {
				c.Node.Prefixes = append(c.Node.Prefixes, netip.MustParsePrefix(p))
			}
		})
	}
	for _, tc := range []struct {
		name     string
		claims   [][]string // cluster, node, prefixes
		want     string     // peers of b and c
		problems []string
	}{
		{"a pod of one node in the prefix of another", [][]string{{"b", "n1", "10.2.1.0/24"}, {"b", "n2", "10.2.1.77/32"}},
			"b/n1[10.2.1.0/24] b/n2[10.2.1.77/32]", nil},
		{"whichever has the lower name", [][]string{{"b", "n1", "10.2.1.77/32"}, {"b", "n2", "10.2.1.0/24"}},
			"b/n1[10.2.1.77/32] b/n2[10.2.1.0/24]", nil},
		{"of two equal ones, neither wins", [][]string{{"b", "n1", "10.2.1.0/24"}, {"b", "n2", "10.2.1.0/24", "10.2.1.77/32"}}, "b/n2[10.2.1.77/32]", []string{
			"node b/n1: prefixes: 10.2.1.0/24 overlaps 10.2.1.0/24 of node b/n2, and it is not known",
			"node b/n2: prefixes: 10.2.1.0/24 overlaps 10.2.1.0/24 of node b/n1, and it is not known"}},
		{"a loser against the own cluster loses whole, its neighbour only where it overlaps",
			[][]string{{"b", "n1", "10.1.0.0/16"}, {"b", "n2", "10.1.1.77/32", "10.1.9.77/32"}}, "b/n2[10.1.9.77/32]",
			[]string{"node b/n1: prefixes: 10.1.0.0/16 overlaps 10.1.1.0/24 of node a/n1", "node b/n2: prefixes: 10.1.1.77/32 overlaps 10.1.1.0/24 of node a/n1"}},
		{"longer is not better between clusters", [][]string{{"b", "n1", "10.2.0.0/16"}, {"b", "n2", "10.2.2.0/24"}, {"c", "n1", "10.2.2.7/32"}, {"c", "n2", "10.2.0.0/16"}},
			"", []string{
				"node b/n1: prefixes: 10.2.0.0/16 overlaps 10.2.0.0/16 of node c/n2", "node b/n2: prefixes: 10.2.2.0/24 overlaps 10.2.0.0/16 of node c/n2",
				"node c/n1: prefixes: 10.2.2.7/32 overlaps 10.2.0.0/16 of node b/n1", "node c/n2: prefixes: 10.2.0.0/16 overlaps 10.2.0.0/16 of node b/n1"}},
	} {
		s = clusterset()
		claim("b", "n1")
		claim("b", "n2")
		claim("c", "n1")
		claim("c", "n2")
		for _, c := range tc.claims {
			claim(c[0], c[1], c[2:]...)
		}
		r := planFor(s)
		var peers []string
		for _, p := range r.Desired.Peers {
			peers = append(peers, fmt.Sprint(p.Name, p.AllowedIPs))
		}
		if got := strings.Join(peers, " "); got != tc.want {
			t.Errorf("%s: peers %s, want %s", tc.name, got, tc.want)
		}
		problems := slices.DeleteFunc(losses(r), func(p clustermesh.Problem) bool { // of those that claim nothing
			return strings.HasPrefix(p.Message, "it has no prefix of pods")
		})
		if len(problems) != len(tc.problems) {
			t.Errorf("%s: problems %v", tc.name, problems)
			continue
		}
		for i, want := range tc.problems {
			if !strings.HasPrefix(problems[i].String(), want) {
				t.Errorf("%s: problem %q", tc.name, problems[i])
			}
		}
	}
}

// TestHeldPrefix: of two nodes that claim a prefix, the one that had it keeps it while it lives.
func TestHeldPrefix(t *testing.T) {
	contested := netip.MustParsePrefix("10.2.1.0/24")
	for _, thief := range []clustermesh.Origin{origin("b", "n2"), origin("c", "n1")} {
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{Mesh: true})
		owner := func(s *clustermesh.State) (out string) {
			for _, p := range p.plan(*s).Desired.Peers {
				if slices.Contains(p.AllowedIPs, contested) {
					out += p.Name
				}
			}
			return out
		}
		s := clusterset()
		if got := owner(&s); got != "b/n1" {
			t.Fatalf("before: %q", got)
		}
		edit(&s, string(thief.Cluster), string(thief.Node), func(c *clustermesh.Content) { c.Node.Prefixes = append(c.Node.Prefixes, contested) })
		if got := owner(&s); got != "b/n1" {
			t.Errorf("claimed by %s: it is %q's", thief, got)
		}
		kill("b", "n1")(&s)
		want := "b/n1"
		if thief.Cluster == "b" {
			want = "b/n2"
		}
		if got := owner(&s); got != want {
			t.Errorf("claimed by %s, and its owner is dead: it is %q's, want %q", thief, got, want)
		}
	}
}

func TestPlanFamilies(t *testing.T) {
	s := clusterset()
	v6 := netip.MustParsePrefix("fd00:5::/112")
	edit(&s, "a", "", func(c *clustermesh.Content) {
		c.Allocations = append(c.Allocations, clustermesh.Allocation{Service: serve, IP: netip.MustParseAddr("fd00:5::9")})
	})
	r := once(s, plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr, v6}})
	if len(r.Desired.Frontends) != 2 || len(r.Desired.Frontends[1].Backends) != 0 {
		t.Fatalf("frontends %+v", r.Desired.Frontends)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), "all 6 endpoints are of the other family") {
		t.Errorf("problems %v", r.Problems)
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	first := planFor(clusterset())
	for range 20 {
		if got := planFor(clusterset()); !reflect.DeepEqual(got, first) {
			t.Fatalf("plans differ:\n%+v\n%+v", first, got)
		}
	}
}

// large is 10,000 services × 10 endpoints of one cluster of 1,000 nodes.
func large() clustermesh.State {
	s := clusterset()
	var cluster clustermesh.Content
	for i := range 10_000 {
		name := clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprintf("s%d", i)}
		cluster.Exports = append(cluster.Exports, clustermesh.Export{Service: name, Type: clustermesh.ClusterSetIP,
			Ports: []clustermesh.ServicePort{http}, Families: []clustermesh.Family{clustermesh.IPv4}})
		cluster.Allocations = append(cluster.Allocations, clustermesh.Allocation{Service: name,
			IP: netip.AddrFrom4([4]byte{241, 9, byte(i >> 8), byte(i)})})
	}
	edit(&s, "a", "", func(c *clustermesh.Content) { *c = cluster })
	for n := range 1000 {
		o := clustermesh.Origin{Cluster: "a", Node: clustermesh.NodeName(fmt.Sprintf("n%d", n))}
		c := clustermesh.Content{Node: &clustermesh.Node{Name: o.Node, Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(n >> 8), byte(n), 0}), 24)}}}
		for e := range 100 {
			c.Endpoints = append(c.Endpoints, clustermesh.Endpoint{Service: cluster.Exports[(n*10+e*1009)%10_000].Service, Ready: true, Serving: true,
				Addr:  netip.AddrFrom4([4]byte{100, byte(n >> 8), byte(n), byte(e)}),
				Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Node: o.Node})
		}
		s.Records = s.Records.With(o, clustermesh.Record{Origin: o, Content: c})
		s.Contacts = s.Contacts.With(o, clustermesh.Alive)
	}
	return s
}

// BenchmarkPlan is the first plan of 10,000 services × 10 endpoints.
func BenchmarkPlan(b *testing.B) {
	s := large()
	b.ReportAllocs()
	for b.Loop() {
		planFor(s)
	}
}

// BenchmarkOneChange is each later one, after one of the 100,000 endpoints has changed: the target is 5 ms.
func BenchmarkOneChange(b *testing.B) {
	s := large()
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	p.plan(s)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		edit(&s, "a", "n2", func(c *clustermesh.Content) { c.Endpoints[77].Ready = !c.Endpoints[77].Ready })
		b.StartTimer()
		p.plan(s)
	}
}

// BenchmarkNoChange is each later one when nothing has changed.
func BenchmarkNoChange(b *testing.B) {
	s := large()
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true})
	p.plan(s)
	b.ReportAllocs()
	for b.Loop() {
		p.plan(s)
	}
}
