package authority

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

func endpoint(service, addr string) clustermesh.Endpoint {
	namespace, name, _ := strings.Cut(service, "/")
	return clustermesh.Endpoint{Service: clustermesh.ServiceName{Namespace: namespace, Name: name}, Addr: netip.MustParseAddr(addr), Node: "n1", Zone: "eu-1", Ready: true}
}

func recordOf(c clustermesh.Content) clustermesh.Record {
	return clustermesh.Record{Origin: clustermesh.Origin{Cluster: "east", Node: "n1"}, Content: c}
}

// honest is what node n1 may say.
func honest() clustermesh.Record {
	return recordOf(clustermesh.Content{
		Node: &clustermesh.Node{
			Name: "n1", Locality: statement().Locality, PublicKey: key.Public{7}, Addresses: addrs("192.0.2.1"),
			Prefixes: prefixes("10.1.1.0/24", "fd00:1:0:1::/64", clustermesh.TunnelAddr(clustermesh.Origin{Cluster: "east", Node: "n1"}, false).String()+"/32"), Inside: netip.MustParseAddr("10.1.1.1"),
		},
		Endpoints: []clustermesh.Endpoint{endpoint("shop/cart", "10.1.1.7"), endpoint("web-1/site", "fd00:1:0:1::7"), endpoint("shop/host", "192.0.2.1")},
	})
}

func TestHonestRecordsPassUnchanged(t *testing.T) {
	r := Admit(self, pins()["east"], statement(), honest())
	if len(r.Problems) > 0 {
		t.Errorf("problems %v", r.Problems)
	}
	if want := honest().Content; !slices.EqualFunc(r.Content.Endpoints, want.Endpoints, clustermesh.Endpoint.Equal) ||
		!slices.Equal(r.Content.Node.Prefixes, want.Node.Prefixes) || r.Content.Node.Inside != want.Node.Inside {
		t.Errorf("got %+v", r.Content)
	}
}

// TestAdmit changes one thing in an honest record. Only that is left out, and one Problem has the reason.
func TestAdmit(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*clustermesh.Record, *Statement, *Pin)
		problem string
	}{
		"an endpoint of the receiver": {func(r *clustermesh.Record, _ *Statement, _ *Pin) {
			r.Content.Endpoints[0] = endpoint("shop/cart", "10.2.1.7")
		}, "it is not in the prefixes of node east/n1"},
		"an endpoint of another node": {func(r *clustermesh.Record, _ *Statement, _ *Pin) {
			r.Content.Endpoints[0] = endpoint("shop/cart", "10.1.2.7")
		}, "it is not in the prefixes of node east/n1"},
		"an endpoint that is loopback": {func(r *clustermesh.Record, _ *Statement, _ *Pin) {
			r.Content.Endpoints[0] = endpoint("shop/cart", "127.0.0.1")
		}, "cannot be reached"},
		"an endpoint that is metadata": {func(r *clustermesh.Record, _ *Statement, _ *Pin) {
			r.Content.Endpoints[0] = endpoint("shop/cart", "169.254.169.254")
		}, "cannot be reached"},
		"an endpoint on another node": {func(r *clustermesh.Record, _ *Statement, _ *Pin) { r.Content.Endpoints[0].Node = "n2" }, `may not publish endpoints of that node`},
		"a namespace that is closed": {func(r *clustermesh.Record, _ *Statement, _ *Pin) {
			r.Content.Endpoints[0].Service.Namespace = "kube-system"
		}, "accepts namespaces [shop web-*]"},
		"an address not stated": {func(r *clustermesh.Record, _ *Statement, _ *Pin) { r.Content.Node.Addresses = addrs("192.0.2.2") }, "did not state that it has 192.0.2.2"},
		"an address outside the pin": {func(r *clustermesh.Record, s *Statement, _ *Pin) {
			r.Content.Node.Addresses, s.Addresses = addrs("198.51.100.1"), append(addrs("198.51.100.1"), s.Addresses...)
		}, "198.51.100.1 is not in the pinned node ranges"},
		"a prefix not stated": {func(r *clustermesh.Record, _ *Statement, _ *Pin) {
			r.Content.Node.Prefixes[1] = netip.MustParsePrefix("10.1.0.0/16")
		}, "did not state that it has 10.1.0.0/16"},
		"a prefix outside the pin": {func(r *clustermesh.Record, s *Statement, _ *Pin) {
			r.Content.Node.Prefixes[1] = netip.MustParsePrefix("8.8.8.0/24")
			s.Prefixes = append(prefixes("8.8.8.0/24"), s.Prefixes...)
		}, "8.8.8.0/24 is not in the pinned pod ranges"},
		"a prefix of the receiver": {func(r *clustermesh.Record, s *Statement, p *Pin) {
			r.Content.Node.Prefixes[1], p.Pods = netip.MustParsePrefix("10.2.3.0/24"), append(p.Pods, prefixes("10.2.0.0/16")...)
			s.Prefixes = append(prefixes("10.2.3.0/24"), s.Prefixes...)
		}, "10.2.3.0/24 overlaps 10.2.0.0/16, which belongs to cluster west"},
		"another WireGuard key": {func(r *clustermesh.Record, _ *Statement, _ *Pin) { r.Content.Node.PublicKey = key.Public{8} }, "another WireGuard key"},
		"too many endpoints":    {func(_ *clustermesh.Record, _ *Statement, p *Pin) { p.Quota.Endpoints = 2 }, "it has 3 endpoints, and the quota is 2: the last 1"},
	} {
		r, s, p := honest(), statement(), pins()["east"]
		c.change(&r, &s, &p)
		got := Admit(self, p, s, r)
		if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, c.problem) {
			t.Errorf("%s: problems %v, want one with %q", name, got.Problems, c.problem)
		}
		left := len(got.Content.Endpoints) + len(got.Content.Node.Addresses) + len(got.Content.Node.Prefixes)
		if want := 6; left != want && got.Content.Node.PublicKey == r.Content.Node.PublicKey {
			t.Errorf("%s: %d things are left, want %d: %+v", name, left, want, got.Content)
		}
		if again := Admit(self, p, s, got); len(again.Problems) != 1 {
			t.Errorf("%s: what was admitted is not admitted: %v", name, again.Problems)
		}
	}
}

// TestClusterIPs: a node is the entry to what is pinned, and a Service has a ClusterIP there, and none of the
// receiver's.
func TestClusterIPs(t *testing.T) {
	r, s, p := honest(), statement(), pins()["east"]
	services := prefixes("10.128.0.0/16", "10.129.0.0/16", "10.2.0.0/24")
	r.Content.Node.ClusterIPs = services
	r.Content.Node.Prefixes, s.Prefixes = slices.Concat(r.Content.Node.Prefixes, services), slices.Concat(s.Prefixes, services)
	p.Pods = slices.Concat(p.Pods, prefixes("10.128.0.0/16", "10.2.0.0/16"))
	got := Admit(self, p, s, r)
	if !slices.Equal(got.Content.Node.ClusterIPs, prefixes("10.128.0.0/16")) || len(got.Problems) != 2 {
		t.Errorf("entry to %v, problems %v", got.Content.Node.ClusterIPs, got.Problems)
	}

	cart := clustermesh.Export{Service: clustermesh.ServiceName{Namespace: "shop", Name: "cart"}, IPs: addrs("10.128.0.7", "10.129.0.7", "10.2.0.7")}
	r = clustermesh.Record{Origin: clustermesh.Origin{Cluster: "east"}, Content: clustermesh.Content{Mirrors: []clustermesh.Export{cart}}}
	got = Admit(self, p, s, r)
	if m := got.Content.Mirrors; len(m) != 1 || !slices.Equal(m[0].IPs, addrs("10.128.0.7")) || len(got.Problems) != 2 || len(cart.IPs) != 3 || len(r.Content.Mirrors[0].IPs) != 3 {
		t.Errorf("mirrored %+v, problems %v", m, got.Problems)
	}
	r.Origin.Cluster = self.Cluster
	if got := Admit(self, Pin{}, s, r); len(got.Content.Mirrors[0].IPs) != 3 || len(got.Problems) > 0 {
		t.Errorf("the receiver's own: %+v, %v", got.Content.Mirrors, got.Problems)
	}
}

// TestNodelessEndpoints: endpoints that name no node are in the pinned pods, or in what the pin lists for
// them; the machines of a cluster are not among them unless an operator adds them.
func TestNodelessEndpoints(t *testing.T) {
	published := func(addrs ...string) clustermesh.Record {
		r := clustermesh.Record{Origin: clustermesh.Origin{Cluster: "east"}}
		for _, a := range addrs {
			e := endpoint("shop/cart", a)
			e.Node = ""
			r.Content.Endpoints = append(r.Content.Endpoints, e)
		}
		return r
	}
	r := published("10.1.1.7", "192.0.2.100", "198.51.100.9", "fd00:1:0:1::9", "10.2.1.7")
	for what, c := range map[string]struct {
		endpoints []netip.Prefix
		want      string
		problems  int
	}{
		"pods alone":       {nil, "[10.1.1.7 fd00:1:0:1::9]", 1},
		"a machine":        {prefixes("192.0.2.100/32"), "[10.1.1.7 192.0.2.100 fd00:1:0:1::9]", 1},
		"not what is ours": {prefixes("192.0.2.100/32", "198.51.100.0/24", "10.2.0.0/16"), "[10.1.1.7 192.0.2.100 198.51.100.9 fd00:1:0:1::9]", 1},
	} {
		p := pins()["east"]
		p.Endpoints = c.endpoints
		got := Admit(self, p, Statement{}, r)
		var left []netip.Addr
		for _, e := range got.Content.Endpoints {
			left = append(left, e.Addr)
		}
		if fmt.Sprint(left) != c.want || len(got.Problems) != c.problems {
			t.Errorf("%s: %v, want %s; problems %v", what, left, c.want, got.Problems)
		}
	}
	r.Origin.Cluster = self.Cluster
	if got := Admit(self, pins()["west"], Statement{}, r); len(got.Content.Endpoints) != 5 {
		t.Errorf("the receiver's own: %v", got.Content.Endpoints)
	}
}

// TestSharedInSum: exports, mirrors and global Services are bounded together, and the oldest exports stay.
func TestSharedInSum(t *testing.T) {
	published := func(n int) clustermesh.Record {
		r := clustermesh.Record{Origin: clustermesh.Origin{Cluster: "east"}}
		for i := range n {
			s := clustermesh.ServiceName{Namespace: "shop", Name: fmt.Sprintf("s%05d", i)}
			r.Content.Exports = append(r.Content.Exports, clustermesh.Export{Service: s, Created: int64(n - i)})
			r.Content.Mirrors = append(r.Content.Mirrors, clustermesh.Export{Service: s})
			r.Content.Globals = append(r.Content.Globals, clustermesh.Global{Service: s})
		}
		return r
	}
	sum := func(p Pin, n int) (int, clustermesh.Record) {
		got := Admit(self, p, Statement{}, published(n))
		return len(got.Content.Exports) + len(got.Content.Mirrors) + len(got.Content.Globals), got
	}
	p := pins()["east"]
	if n, got := sum(p, 6_000); n != 18_000 || len(got.Problems) > 0 {
		t.Errorf("%d, problems %v", n, got.Problems)
	}
	if n, got := sum(p, 20_000); n != 20_000 || len(got.Problems) == 0 {
		t.Errorf("%d without a quota, problems %v", n, got.Problems)
	}
	p.Quota.Exports = 300
	n, got := sum(p, 200)
	if n != 300 || len(got.Content.Exports) != 200 || len(got.Content.Mirrors) != 100 {
		t.Errorf("%d with a quota of 300, %d exports", n, len(got.Content.Exports))
	}
	p.Quota.Exports = 1
	if _, got = sum(p, 20); len(got.Content.Exports) != 1 || got.Content.Exports[0].Service.Name != "s00019" {
		t.Errorf("the oldest is s00019: %+v", got.Content.Exports)
	}
}

func TestLocalityIsStated(t *testing.T) {
	r := honest()
	r.Content.Node.Locality, r.Content.Endpoints[1].Zone = clustermesh.Locality{Region: "us", Zone: "us-1"}, "us-1"
	got := Admit(self, pins()["east"], statement(), r)
	if got.Content.Node.Locality != statement().Locality || got.Content.Endpoints[1].Zone != "eu-1" || r.Content.Endpoints[1].Zone != "us-1" {
		t.Errorf("got %+v, given %+v", got.Content, r.Content)
	}
}

// TestZones: with zones in the pin, a node that claims another has its region and no zone.
func TestZones(t *testing.T) {
	p := pins()["east"]
	p.Zones = []string{"eu-2"}
	want := clustermesh.Locality{Region: statement().Locality.Region}
	if got := Admit(self, p, statement(), honest()); got.Content.Node.Locality != want || got.Content.Endpoints[0].Zone != "" || len(got.Problems) != 1 {
		t.Errorf("outside the pin: %+v, zone %q, %v", got.Content.Node.Locality, got.Content.Endpoints[0].Zone, got.Problems)
	}
	p.Zones = []string{""} // no node had a label of a zone
	if got := Admit(self, p, statement(), honest()); got.Content.Node.Locality != want || got.Content.Endpoints[0].Zone != "" {
		t.Errorf("no zones: %+v, zone %q", got.Content.Node.Locality, got.Content.Endpoints[0].Zone)
	}
	p.Regions = []string{""}
	if got := Admit(self, p, statement(), honest()); got.Content.Node.Locality != (clustermesh.Locality{}) || got.Content.Endpoints[0].Zone != "" {
		t.Errorf("no regions: %+v, zone %q", got.Content.Node.Locality, got.Content.Endpoints[0].Zone)
	}
	p.Regions, p.Zones = nil, []string{"eu-2", "eu-1"}
	if got := Admit(self, p, statement(), honest()); got.Content.Node.Locality != statement().Locality || got.Content.Endpoints[0].Zone != "eu-1" || len(got.Problems) > 0 {
		t.Errorf("inside the pin: %+v, zone %q, %v", got.Content.Node.Locality, got.Content.Endpoints[0].Zone, got.Problems)
	}
}

// TestRegions: with regions in the pin, a cluster can be in these only, in the eyes of its importer.
func TestRegions(t *testing.T) {
	p := pins()["east"]
	p.Regions = []string{"asia"}
	if got := Admit(self, p, statement(), honest()); got.Content.Node.Locality != (clustermesh.Locality{}) || got.Content.Endpoints[0].Zone != "" {
		t.Errorf("outside the pin: %+v, zone %q", got.Content.Node.Locality, got.Content.Endpoints[0].Zone)
	}
	silent := statement()
	silent.Locality = clustermesh.Locality{}
	if got := Admit(self, p, silent, honest()); len(got.Problems) > 0 {
		t.Errorf("a node without a region: %v", got.Problems)
	}
	p.Regions = []string{"asia", "eu"}
	if got := Admit(self, p, statement(), honest()); got.Content.Node.Locality != statement().Locality || got.Content.Endpoints[0].Zone != "eu-1" || len(got.Problems) > 0 {
		t.Errorf("inside the pin: %+v, zone %q, %v", got.Content.Node.Locality, got.Content.Endpoints[0].Zone, got.Problems)
	}
}

func TestOneProblemForOneReason(t *testing.T) {
	r := honest()
	for range 999 {
		r.Content.Endpoints = append(r.Content.Endpoints, endpoint("shop/cart", "10.2.1.7"))
	}
	got := Admit(self, pins()["east"], statement(), r)
	if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "with 998 more of east/n1") || len(got.Content.Endpoints) != 3 {
		t.Errorf("%d endpoints, problems %v", len(got.Content.Endpoints), got.Problems)
	}
}

// TestNothingOutsideIsAdmitted draws records, statements and pins. Whatever is admitted is in the
// statement and in the pin, and never the receiver's.
func TestNothingOutsideIsAdmitted(t *testing.T) {
	addr := rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom4([4]byte{rapid.SampledFrom([]byte{10, 127, 169, 192, 224}).Draw(t, "a"), rapid.ByteRange(0, 3).Draw(t, "b"), rapid.ByteRange(0, 3).Draw(t, "c"), rapid.Byte().Draw(t, "d")})
	})
	prefix := rapid.Custom(func(t *rapid.T) netip.Prefix {
		return netip.PrefixFrom(addr.Draw(t, "addr"), rapid.IntRange(1, 32).Draw(t, "bits")).Masked()
	})
	rapid.Check(t, func(t *rapid.T) {
		s, p := statement(), pins()["east"]
		s.Prefixes = rapid.SliceOfN(prefix, 0, 3).Draw(t, "stated")
		s.Addresses = rapid.SliceOfN(addr, 0, 3).Draw(t, "addresses")
		p.Pods, p.Nodes = rapid.SliceOfN(prefix, 0, 3).Draw(t, "pods"), rapid.SliceOfN(prefix, 0, 2).Draw(t, "nodes")
		r := honest()
		r.Content.Node.Prefixes = rapid.SliceOfN(prefix, 0, 4).Draw(t, "prefixes")
		r.Content.Node.Addresses = rapid.SliceOfN(addr, 0, 4).Draw(t, "addresses")
		for _, a := range rapid.SliceOfN(addr, 0, 5).Draw(t, "endpoints") {
			r.Content.Endpoints = append(r.Content.Endpoints, endpoint("shop/cart", a.String()))
		}
		got := Admit(self, p, s, r).Content
		for _, q := range got.Node.Prefixes {
			if !covered(q, s.Prefixes) || !covered(q, p.Pods) || slices.ContainsFunc(self.Own, q.Overlaps) {
				t.Fatalf("prefix %s, stated %v, pinned %v", q, s.Prefixes, p.Pods)
			}
		}
		for _, a := range got.Node.Addresses {
			if !slices.Contains(s.Addresses, a) || !contains(p.Nodes, a) || contains(self.Own, a) {
				t.Fatalf("address %s, stated %v, pinned %v", a, s.Addresses, p.Nodes)
			}
		}
		for _, e := range got.Endpoints {
			if !contains(s.Prefixes, e.Addr) && !slices.Contains(s.Addresses, e.Addr) || !contains(p.Pods, e.Addr) && !contains(p.Nodes, e.Addr) || contains(self.Own, e.Addr) || e.Addr.IsLoopback() {
				t.Fatalf("endpoint %s, stated %v %v, pinned %v %v", e.Addr, s.Prefixes, s.Addresses, p.Pods, p.Nodes)
			}
		}
	})
}

// covered reports whether every address of q is in one of ps, address by address at its ends.
func covered(q netip.Prefix, ps []netip.Prefix) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Bits() <= q.Bits() && p.Contains(q.Addr()) })
}

func BenchmarkVerify(b *testing.B) {
	bytes := make([]byte, 1324) // a record of ten endpoints
	s := statement()
	proof := Seal(node, bytes, must(s.Sign(east)))
	o, all := clustermesh.Origin{Cluster: "east", Node: "n1"}, pins()
	known := func([]byte) (Statement, error) { return s, nil }
	for b.Loop() {
		if _, err := Verify(all, o, bytes, proof, known); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	bytes := make([]byte, 1324)
	stated := must(statement().Sign(east))
	for b.Loop() {
		Seal(node, bytes, stated)
	}
}

func BenchmarkAdmit(b *testing.B) {
	r, p, s := honest(), pins()["east"], statement()
	for len(r.Content.Endpoints) < 10 {
		r.Content.Endpoints = append(r.Content.Endpoints, endpoint("shop/cart", "10.1.1.8"))
	}
	for b.Loop() {
		if got := Admit(self, p, s, r); len(got.Problems) > 0 {
			b.Fatal(got.Problems)
		}
	}
}
