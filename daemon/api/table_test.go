package api

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/internal/l4"
)

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0.0s", 0: "0.0s", 390 * time.Millisecond: "0.3s", 9999 * time.Millisecond: "9.9s", 41 * time.Second: "41s",
		372 * time.Second: "6m12s", time.Hour: "1h00m", 3*time.Hour + 5*time.Minute: "3h05m", 98 * time.Hour: "4d2h",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "–", 1e-9: "<1 %", 0.01: "1 %", 1.0 / 3: "33 %", 0.995: "99 %", 1: "100 %",
		0.99999: "100 %"} {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%v) = %q, want %q", share, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1288490189: "1.2 GiB", math.MaxInt64: "8192.0 PiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestRowsFitTheirHeaders: one cell per column, none empty, for every value that prints as a row.
func TestRowsFitTheirHeaders(t *testing.T) {
	for _, r := range []Row{Cluster{Name: "a"}, Service{Name: "a/b"}, Backend{Service: "a/b", Endpoint: Endpoint{Cluster: "a"}}, Endpoint{Cluster: "a", Reason: "x"},
		Node{Cluster: "a", Tunnel: &Tunnel{}}, Node{}} {
		header, row := r.TableHeader(), r.TableRow(time.Time{})
		if len(header) != len(row) {
			t.Errorf("%T: %d columns, %d cells", r, len(header), len(row))
		}
		for i, cell := range row {
			if cell == "" {
				t.Errorf("%T: column %s is empty", r, header[i])
			}
		}
	}
}

func TestServiceRowSaysWhereAndWhy(t *testing.T) {
	end := func(tier, cluster string, ready bool, share float64) Endpoint {
		return Endpoint{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Pod: fmt.Sprint(tier, cluster, ready, share), Tier: tier,
			Cluster: cluster, Ready: ready, Share: share, Reason: "node is dead"}
	}
	vip := l4.New(netip.MustParseAddr("241.0.0.1"), 80, l4.TCP)
	one := func(ends ...Endpoint) []Frontend {
		return []Frontend{{Addr: vip, InKernel: true, Endpoints: ends}}
	}
	for _, c := range []struct {
		name           string
		service        Service
		ready, to, why string
	}{
		{"nearest", Service{Frontends: one(end("clusterset", "b", true, 0), end("node", "a", true, 1))}, "2/2",
			"node 100 % (a)", "nearest tier with endpoints"},
		{"passed over", Service{Frontends: one(end("clusterset", "b", true, .5), end("clusterset", "c", true, .5),
			end("zone", "a", false, 0), end("node", "a", false, 0))}, "2/4", "clusterset 100 % (b c)", "node 0/1 ready, zone 0/1 ready"},
		{"spill", Service{Frontends: one(end("zone", "a", true, .93), end("cluster", "a", true, .07))}, "2/2",
			"zone 93 % · cluster 7 % (a)", "node is dead"}, // the reason of the first endpoint
		{"cluster without a share", Service{Frontends: one(end("clusterset", "b", true, 1), end("clusterset", "c", false, 0))}, "1/2",
			"clusterset 100 % (b)", "nearest tier with endpoints"},
		{"ready and barred", Service{Frontends: one(end("zone", "a", true, 0), end("cluster", "a", true, 1))}, "2/2",
			"cluster 100 % (a)", "zone: node is dead"},
		{"none ready", Service{Frontends: one(end("node", "a", false, 0))}, "0/1", "✗ nowhere", "node 0/1 ready: connections are refused"},
		{"nobody", Service{Frontends: one()}, "0/0", "✗ nowhere", "no endpoint anywhere: connections are refused"},
		{"kernel", Service{Frontends: []Frontend{{Addr: vip, Endpoints: []Endpoint{end("node", "a", true, 1)}}}}, "1/1", "node 100 % (a)",
			"✗ the kernel's map differs from the plan"},
		{"ports differ", Service{Name: "x/y", Frontends: append(one(end("node", "a", true, 1)), one()...)}, "1/1",
			"! differs by port", "strait explain x/y"},
		{"headless", Service{Type: "Headless"}, "–", "–", "names resolve to the pods"},
		{"not programmed", Service{Type: "ClusterSetIP"}, "–", "✗ nowhere", "no frontend is programmed: see strait status"},
	} {
		row := c.service.TableRow(time.Time{})
		if got := row[4:]; !reflect.DeepEqual(got, []string{c.ready, c.to, c.why}) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestReadyCountsPodsOnce(t *testing.T) {
	end := func(addr, pod string, ready bool) Endpoint {
		return Endpoint{Cluster: "a", Pod: pod, Addr: netip.MustParseAddrPort(addr), Ready: ready}
	}
	s := Service{Frontends: []Frontend{
		{Addr: l4.New(netip.MustParseAddr("241.0.0.1"), 80, l4.TCP), Endpoints: []Endpoint{end("10.0.0.1:80", "p", true),
			end("10.0.0.2:80", "q", true), end("10.0.0.3:80", "", true), end("10.0.0.4:80", "r", false)}},
		{Addr: l4.New(netip.MustParseAddr("241.0.0.1"), 81, l4.TCP), Endpoints: []Endpoint{end("10.0.0.1:81", "p", true),
			end("10.0.0.2:81", "q", false), end("10.0.0.3:81", "", true), end("10.0.0.4:81", "r", true)}},
	}}
	if got := s.ready(); got != "2/4" {
		t.Errorf("%s, want 2/4: q and r are each not ready on one port", got)
	}
}

// An endpoint counts for the addresses of its own IP family, behind which alone it can be.
func TestFamiliesOfAService(t *testing.T) {
	four, six := netip.MustParseAddr("241.0.0.1"), netip.MustParseAddr("fd00:5354::1")
	front := func(vip netip.Addr, ends ...Endpoint) Frontend {
		return Frontend{Addr: l4.New(vip, 80, l4.TCP), InKernel: true, Endpoints: ends}
	}
	pod := func(name, addr string, ready bool) Endpoint {
		e := Endpoint{Cluster: "a", Tier: "node", Pod: name, Addr: netip.MustParseAddrPort(addr), Ready: ready, Reason: "ready, in the nearest tier"}
		if ready {
			e.Share = 1
		}
		return e
	}
	barred := func(name, addr string) Endpoint {
		return Endpoint{Cluster: "a", Tier: "node", Pod: name, Addr: netip.MustParseAddrPort(addr), Reason: "is of the other family"}
	}
	for _, c := range []struct {
		name           string
		frontends      []Frontend
		ready, to, why string
	}{
		{"a pod of both families", []Frontend{
			front(four, pod("p", "10.0.0.1:80", true), barred("p", "[fd00::1]:80")),
			front(six, barred("p", "10.0.0.1:80"), pod("p", "[fd00::1]:80", true))}, "1/1", "node 100 % (a)", "nearest tier with endpoints"},
		{"one address is enough", []Frontend{front(four, pod("", "10.0.0.1:80", true), barred("", "[fd00::1]:80"))}, "1/1",
			"node 100 % (a)", "nearest tier with endpoints"},
		{"an address behind which nothing can be", []Frontend{
			front(four, pod("p", "10.0.0.1:80", true)), front(six, barred("p", "10.0.0.1:80"))}, "IPv4 1/1 · IPv6 0/0",
			"! differs by family", "strait explain x/y"},
		{"not ready by one family", []Frontend{
			front(four, pod("p", "10.0.0.1:80", true), barred("p", "[fd00::1]:80")),
			front(six, barred("p", "10.0.0.1:80"), pod("p", "[fd00::1]:80", false))}, "IPv4 1/1 · IPv6 0/1",
			"! differs by family", "strait explain x/y"},
		{"only the other family", []Frontend{front(six, barred("p", "10.0.0.1:80"))}, "0/0", "✗ nowhere",
			"no IPv6 endpoint anywhere: connections are refused"},
		{"not ready, beside the other family", []Frontend{front(four, pod("p", "10.0.0.1:80", false), barred("p", "[fd00::1]:80"))}, "0/1",
			"✗ nowhere", "node 0/1 ready: connections are refused"},
	} {
		s := Service{Name: "x/y", Type: "ClusterSetIP", Frontends: c.frontends}
		if got, want := s.TableRow(time.Time{})[4:], []string{c.ready, c.to, c.why}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

func TestSimilarServices(t *testing.T) {
	v := []Service{{Name: "default/serve"}, {Name: "prod/serve"}, {Name: "default/cart"}}
	for name, want := range map[string][]string{"default/srve": {"default/serve"}, "x/serve": {"default/serve", "prod/serve"},
		"default/crat": {"default/cart"}, "other/thing": nil} {
		if got := SimilarServices(v, name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestTiersKeepEverything: grouping loses no endpoint and no share, and orders near to far.
func TestTiersKeepEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Frontend
		var total float64
		ready := 0
		for i := range rapid.IntRange(0, 20).Draw(t, "n") {
			e := Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80),
				Tier:  rapid.SampledFrom(append([]string{"", "odd"}, tierOrder...)).Draw(t, "tier"),
				Ready: rapid.Bool().Draw(t, "ready"), Share: rapid.Float64Range(0, 1).Draw(t, "share")}
			total += e.Share
			if e.Ready {
				ready++
			}
			f.Endpoints = append(f.Endpoints, e)
		}
		var n, gotReady int
		var share float64
		last := -1
		for _, tier := range f.Tiers() {
			n, gotReady, share = n+len(tier.Endpoints), gotReady+tier.Ready, share+tier.Share
			if rank := tierRank(tier.Name); rank < last {
				t.Fatalf("%q is out of order", tier.Name)
			} else {
				last = rank
			}
		}
		if n != len(f.Endpoints) || gotReady != ready || math.Abs(share-total) > 1e-9 {
			t.Fatalf("%d endpoints, %d ready, share %v; want %d, %d, %v", n, gotReady, share, len(f.Endpoints), ready, total)
		}
	})
}

// TestSpellingDistance: Levenshtein's is a metric and bounded by the longer word.
func TestSpellingDistance(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab := spellingDistance(a, b)
		if ab != spellingDistance(b, a) || (ab == 0) != (a == b) || ab > max(len(a), len(b)) ||
			ab > spellingDistance(a, c)+spellingDistance(c, b) {
			t.Fatalf("distance of %q and %q is %d", a, b, ab)
		}
	})
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{"": "", "12345678": "12345678", "123456789": "1234…789", "äöüäöüäöü": "äöüä…äöü"} {
		if got := Short(text, 8); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestNodeRowIsNarrow(t *testing.T) {
	n := Node{Cluster: strings.Repeat("c", 40), Name: strings.Repeat("n", 63), Contact: "alive", Zone: strings.Repeat("z", 40),
		Addresses: []netip.Addr{netip.MustParseAddr("2001:db8:1234:5678:9abc:def0:1234:5678"), netip.MustParseAddr("192.0.2.1")},
		Prefixes:  []netip.Prefix{netip.MustParsePrefix("2001:db8:1234:5678:9abc::/80"), netip.MustParsePrefix("10.0.0.0/24")},
		Tunnel:    &Tunnel{Underlay: netip.MustParseAddrPort("[2001:db8:1234:5678:9abc:def0:1234:9999]:51820"), Sent: math.MaxInt64, Received: 1}}
	n.ClusterIPs = n.Prefixes[1:]
	for i, cell := range n.TableRow(time.Time{}) {
		if n.TableHeader()[i] == "PODS" && !strings.HasSuffix(cell, "/80 entry") {
			t.Errorf("PODS of an entry is %q", cell)
		}
		if width := len([]rune(cell)); width > nameWidth {
			t.Errorf("column %s is %d wide: %s", n.TableHeader()[i], width, cell)
		}
	}
	for _, c := range []struct{ underlay, want string }{{"192.0.2.1:51820", ":51820"}, {"192.0.2.9:51820", "192.0.2.9:51820"}} {
		n := Node{Addresses: n.Addresses[1:], Tunnel: &Tunnel{Underlay: netip.MustParseAddrPort(c.underlay)}}
		if got := n.tunnelEnd(); got != c.want {
			t.Errorf("tunnel to %s: %s, want %s", c.underlay, got, c.want)
		}
	}
}
