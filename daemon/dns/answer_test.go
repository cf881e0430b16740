package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

func name(s string) clustermesh.ServiceName {
	n, err := clustermesh.ParseServiceName(s)
	if err != nil {
		panic(err)
	}
	return n
}

func addrs(text ...string) (out []netip.Addr) {
	for _, t := range text {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func endpoint(host, cluster, ip string) Endpoint {
	return Endpoint{Hostname: host, Cluster: clustermesh.ClusterName(cluster), IP: netip.MustParseAddr(ip)}
}

// uid is the name of a cluster that follows the recommendation of KEP-2149.
const uid = "721ab723-13bc-11e5-aec2-42010af0021e"

func testTable() *Table {
	db := Service{Name: name("data/db"), Headless: true,
		Ports: []clustermesh.ServicePort{{Name: "sql", Proto: l4.TCP, Port: 5432}, {Name: "web", Proto: l4.TCP, Port: 80}},
		Endpoints: []Endpoint{
			endpoint("db-0", "us-east", "10.1.1.5"), endpoint("db-0", "us-east", "fd00::5"),
			endpoint("db-0", "us-west", "10.2.1.5"), endpoint("", "us-west", "10.2.1.6"),
		}}
	for i := range db.Endpoints {
		db.Endpoints[i].Ports = []clustermesh.EndpointPort{{Name: "sql", Proto: l4.TCP, Port: 5432}, {Name: "web", Proto: l4.TCP, Port: 80}}
	}
	db.Endpoints[2].Ports = []clustermesh.EndpointPort{{Name: "sql", Proto: l4.TCP, Port: 6543}}
	named := Service{Name: name("data/named"), Headless: true, Ports: []clustermesh.ServicePort{{Name: "sql", Proto: l4.TCP, Port: 5432}},
		Endpoints: []Endpoint{endpoint("old", "us-east", "10.4.1.1"), endpoint("new", "us-east", "10.4.1.2"), endpoint("none", "us-east", "10.4.1.3")}}
	named.Endpoints[0].Ports = []clustermesh.EndpointPort{{Name: "sql", Proto: l4.TCP, Port: 5432}}
	named.Endpoints[1].Ports = []clustermesh.EndpointPort{{Name: "sql", Proto: l4.TCP, Port: 6432}}
	pets := Service{Name: name("data/pets"), Headless: true, Ports: []clustermesh.ServicePort{{Proto: l4.UDP, Port: 53}}, Endpoints: []Endpoint{
		endpoint("pet", uid, "10.3.1.1"), endpoint("pet", uid, "10.3.1.2"), endpoint("pet", uid, "fd00:3::1"),
		endpoint("pet", uid, "fd00:3::2"), endpoint("", uid, "fd00:3::3"),
	}}
	for i := range pets.Endpoints {
		pets.Endpoints[i].Ports = []clustermesh.EndpointPort{{Proto: l4.UDP, Port: 53}}
	}
	return NewTable([]Service{
		{Name: name("default/serve"), IPs: addrs("10.255.0.1", "fd00:255::1"), Ports: []clustermesh.ServicePort{
			{Name: "http", Proto: l4.TCP, Port: 80}, {Name: "udp", Proto: l4.UDP, Port: 5353}, {Name: "dup", Proto: l4.UDP, Port: 80},
			{Name: "signal", Proto: l4.SCTP, Port: 2905}}},
		{Name: name("default/plain"), IPs: addrs("10.255.0.2"), Ports: []clustermesh.ServicePort{{Proto: l4.TCP, Port: 42}}},
		{Name: name("default/pending"), Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}},
		{Name: name("default/six"), IPs: addrs("fd00:255::6"), Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}},
		pets,
		{Name: name("data/empty"), Headless: true, Ports: []clustermesh.ServicePort{{Name: "sql", Proto: l4.TCP, Port: 5432}}},
		db, named,
	})
}

func ask(qname, qtype string) *dns.Msg {
	q := new(dns.Msg).SetQuestion(qname, dns.StringToType[qtype])
	q.Id = 0 // no rotation
	return q
}

// show writes an answer as "RCODE" or the records' data, sorted, one per line.
func show(r *dns.Msg) string {
	if r.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[r.Rcode]
	}
	var out []string
	for _, rr := range r.Answer {
		out = append(out, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// sections are those of the MCS DNS specification 1.0.0 (KEP-1645, specification.md) that name
// records.
var sections = []string{"2.1", "2.2", "2.3.1", "2.3.2", "2.3.3", "2.3.4", "2.4.1", "2.4.2", "2.4.3", "2.4.4"}

// Each row covers a section of the specification. Those with a dash cover what it leaves open: what
// DNS itself (RFC 1034, 2308, 8482) or the conformance suite wants, and what CoreDNS does.
func TestAnswer(t *testing.T) {
	const nodata, nx, refused = "", "NXDOMAIN", "REFUSED"
	covered := map[string]bool{}
	for _, c := range []struct{ section, name, qtype, want string }{
		// The zone.
		{"2.1", "serve.default.svc.clusterset.local.", "A", "10.255.0.1"},
		{"2.1", "serve.default.svc.cluster.local.", "A", refused},
		{"2.1", "serve.default.clusterset.local.", "A", nx},
		{"-", "clusterset.local.", "SOA", "ns.dns.clusterset.local. hostmaster.clusterset.local. 1 7200 1800 86400 5"},
		{"-", "clusterset.local.", "A", nodata},
		{"-", "svc.clusterset.local.", "A", nodata},
		{"-", "default.svc.clusterset.local.", "A", nodata},
		{"-", "nowhere.svc.clusterset.local.", "A", nx},
		{"-", "other.clusterset.local.", "A", nx},
		{"-", "example.org.", "A", refused},
		{"-", ".", "NS", refused},
		{"-", "notclusterset.local.", "A", refused},
		{"-", "clusterset.local.", "AXFR", refused},

		// The version.
		{"2.2", "dns-version.clusterset.local.", "TXT", `"1.0.0"`},
		{"2.2", "DNS-Version.clusterset.local.", "TXT", `"1.0.0"`},
		{"-", "dns-version.clusterset.local.", "A", nodata},
		{"-", "x.dns-version.clusterset.local.", "TXT", nx},
		{"-", "clusterset.local.", "TXT", nodata},

		// Addresses of a Service with ClusterSetIP, of either family or both.
		{"2.3.1", "serve.default.svc.clusterset.local.", "A", "10.255.0.1"},
		{"2.3.1", "serve.default.svc.clusterset.local.", "AAAA", "fd00:255::1"},
		{"2.3.1", "plain.default.svc.clusterset.local.", "A", "10.255.0.2"},
		{"2.3.1", "plain.default.svc.clusterset.local.", "AAAA", nodata},
		{"2.3.1", "six.default.svc.clusterset.local.", "A", nodata},
		{"2.3.1", "six.default.svc.clusterset.local.", "AAAA", "fd00:255::6"},
		{"2.3.1", "pending.default.svc.clusterset.local.", "A", nodata}, // no address was given out yet
		{"2.3.1", "none.default.svc.clusterset.local.", "A", nx},
		{"2.3.1", "serve.data.svc.clusterset.local.", "A", nx},
		{"-", "SERVE.Default.svc.ClusterSet.LOCAL.", "A", "10.255.0.1"},
		{"-", "serve.default.svc.clusterset.local.", "ANY", `"RFC8482" ""`},
		{"-", "none.default.svc.clusterset.local.", "ANY", nx},
		{"-", "serve.default.svc.clusterset.local.", "MX", nodata},
		{"-", "serve.default.svc.clusterset.local.", "TXT", nodata},
		{"-", `serve\.default.svc.clusterset.local.`, "A", nx},

		// Its ports: a record for each that has a name.
		{"2.3.2", "_http._tcp.serve.default.svc.clusterset.local.", "SRV", "0 100 80 serve.default.svc.clusterset.local."},
		{"2.3.2", "_udp._udp.serve.default.svc.clusterset.local.", "SRV", "0 100 5353 serve.default.svc.clusterset.local."},
		{"2.3.2", "_dup._udp.serve.default.svc.clusterset.local.", "SRV", "0 100 80 serve.default.svc.clusterset.local."},
		{"2.3.2", "_http._udp.serve.default.svc.clusterset.local.", "SRV", nx},
		{"2.3.2", "_none._tcp.serve.default.svc.clusterset.local.", "SRV", nx},
		{"2.3.2", "_._tcp.plain.default.svc.clusterset.local.", "SRV", nx},
		{"2.3.2", "_tcp.plain.default.svc.clusterset.local.", "SRV", nodata},
		{"-", "_HTTP._TCP.serve.default.svc.clusterset.local.", "SRV", "0 100 80 serve.default.svc.clusterset.local."},
		{"-", "http.tcp.serve.default.svc.clusterset.local.", "SRV", nx},
		{"-", "_http._tcp.serve.default.svc.clusterset.local.", "A", nodata},
		{"-", "_tcp.serve.default.svc.clusterset.local.", "SRV", nodata},
		// strait serves no SCTP at a ClusterSetIP, so no record leads there.
		{"-", "_sctp.serve.default.svc.clusterset.local.", "SRV", nx},
		{"-", "_signal._sctp.serve.default.svc.clusterset.local.", "SRV", nx},
		// Every port once by target and number, the unnamed as well (conformance specs 19 and 23).
		{"-", "serve.default.svc.clusterset.local.", "SRV",
			"0 100 5353 serve.default.svc.clusterset.local.\n0 100 80 serve.default.svc.clusterset.local."},
		{"-", "plain.default.svc.clusterset.local.", "SRV", "0 100 42 plain.default.svc.clusterset.local."},

		// Addresses back to names, which the specification leaves open; a draft of it wanted them.
		{"2.3.3", "1.0.255.10.in-addr.arpa.", "PTR", "serve.default.svc.clusterset.local."},
		{"2.3.3", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.5.5.2.0.0.0.d.f.ip6.arpa.", "PTR", "serve.default.svc.clusterset.local."},
		{"-", "1.0.255.10.IN-ADDR.arpa.", "PTR", "serve.default.svc.clusterset.local."},

		// No name leads to one cluster's share of a Service.
		{"2.3.4", "us-east.serve.default.svc.clusterset.local.", "A", nx},
		{"2.3.4", "us-east.serve.default.svc.clusterset.local.", "AAAA", nx},
		{"2.3.4", "us-east.serve.default.svc.clusterset.local.", "SRV", nx},
		{"2.3.4", "_http._tcp.us-east.serve.default.svc.clusterset.local.", "SRV", nx},
		{"2.3.4", "x.us-east.serve.default.svc.clusterset.local.", "A", nx},
		{"-", "a.b.c.serve.default.svc.clusterset.local.", "A", nx},

		// Addresses of a headless Service: those of all ready endpoints, and of each by its
		// hostname and cluster.
		{"2.4.1", "db.data.svc.clusterset.local.", "A", "10.1.1.5\n10.2.1.5\n10.2.1.6"},
		{"2.4.1", "db.data.svc.clusterset.local.", "AAAA", "fd00::5"},
		{"2.4.1", "db-0.us-east.db.data.svc.clusterset.local.", "A", "10.1.1.5"},
		{"2.4.1", "db-0.us-east.db.data.svc.clusterset.local.", "AAAA", "fd00::5"},
		{"2.4.1", "db-0.us-west.db.data.svc.clusterset.local.", "A", "10.2.1.5"},
		{"2.4.1", "db-0.us-west.db.data.svc.clusterset.local.", "AAAA", nodata},
		{"2.4.1", "10-2-1-6.us-west.db.data.svc.clusterset.local.", "A", "10.2.1.6"},
		{"2.4.1", "db-1.us-west.db.data.svc.clusterset.local.", "A", nx},
		{"2.4.1", "db-0.us-south.db.data.svc.clusterset.local.", "A", nx},
		{"2.4.1", "pet.721ab723-13bc-11e5-aec2-42010af0021e.pets.data.svc.clusterset.local.", "A", "10.3.1.1\n10.3.1.2"},
		{"2.4.1", "pet.721ab723-13bc-11e5-aec2-42010af0021e.pets.data.svc.clusterset.local.", "AAAA", "fd00:3::1\nfd00:3::2"},
		{"2.4.1", "fd00-3--3.721ab723-13bc-11e5-aec2-42010af0021e.pets.data.svc.clusterset.local.", "AAAA", "fd00:3::3"},
		{"2.4.1", "fd00-3--3.721ab723-13bc-11e5-aec2-42010af0021e.pets.data.svc.clusterset.local.", "A", nodata},
		{"2.4.1", "empty.data.svc.clusterset.local.", "A", nx}, // nothing is ready
		{"2.4.1", "empty.data.svc.clusterset.local.", "AAAA", nx},
		{"2.4.1", "empty.data.svc.clusterset.local.", "SRV", nx},
		{"2.4.1", "db-0.us-east.empty.data.svc.clusterset.local.", "A", nx},
		{"-", "DB-0.US-East.db.data.svc.clusterset.local.", "A", "10.1.1.5"},
		{"-", "db.data.svc.clusterset.local.", "TXT", nodata},

		// Its ports: a record for each of the endpoints and each named port.
		{"2.4.2", "_sql._tcp.db.data.svc.clusterset.local.", "SRV", "0 100 5432 10-2-1-6.us-west.db.data.svc.clusterset.local.\n" +
			"0 100 5432 db-0.us-east.db.data.svc.clusterset.local.\n0 100 6543 db-0.us-west.db.data.svc.clusterset.local."},
		{"2.4.2", "_web._tcp.db.data.svc.clusterset.local.", "SRV", "0 100 80 10-2-1-6.us-west.db.data.svc.clusterset.local.\n" +
			"0 100 80 db-0.us-east.db.data.svc.clusterset.local."},
		{"2.4.2", "_web._udp.db.data.svc.clusterset.local.", "SRV", nx},
		{"2.4.2", "_._tcp.pets.data.svc.clusterset.local.", "SRV", nx},
		{"2.4.2", "_sql._tcp.empty.data.svc.clusterset.local.", "SRV", nx},
		{"-", "pets.data.svc.clusterset.local.", "SRV", "0 100 53 fd00-3--3.721ab723-13bc-11e5-aec2-42010af0021e.pets.data.svc.clusterset.local.\n" +
			"0 100 53 pet.721ab723-13bc-11e5-aec2-42010af0021e.pets.data.svc.clusterset.local."},

		// A named targetPort can be another number in each pod. A pod without it has no port, so no
		// record leads to it, as in CoreDNS; its addresses stay.
		{"2.4.2", "_sql._tcp.named.data.svc.clusterset.local.", "SRV", "0 100 5432 old.us-east.named.data.svc.clusterset.local.\n" +
			"0 100 6432 new.us-east.named.data.svc.clusterset.local."},
		{"2.4.1", "none.us-east.named.data.svc.clusterset.local.", "A", "10.4.1.3"},

		{"2.4.3", "5.1.1.10.in-addr.arpa.", "PTR", "db-0.us-east.db.data.svc.clusterset.local."},
		{"2.4.3", "6.1.2.10.in-addr.arpa.", "PTR", "10-2-1-6.us-west.db.data.svc.clusterset.local."},
		{"2.4.3", "5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa.", "PTR", "db-0.us-east.db.data.svc.clusterset.local."},

		{"2.4.4", "us-west.db.data.svc.clusterset.local.", "A", nx},
		{"2.4.4", "us-west.db.data.svc.clusterset.local.", "AAAA", nx},
		{"2.4.4", "us-west.db.data.svc.clusterset.local.", "SRV", nx},
		{"2.4.4", "_sql._tcp.us-west.db.data.svc.clusterset.local.", "SRV", nx},
	} {
		covered[c.section] = true
		t.Run(c.section+" "+c.name+" "+c.qtype, func(t *testing.T) { checkAnswer(t, c.name, c.qtype, c.want) })
	}
	for _, s := range sections {
		if !covered[s] {
			t.Errorf("nothing covers section %s", s)
		}
	}
}

// checkAnswer asks as the server does, and demands an answer, or the code of an error.
func checkAnswer(t *testing.T, name, qtype, want string) {
	r, reverse := AnswerReverse(testTable(), "clusterset.local", ask(name, qtype))
	if !reverse {
		r = Answer(testTable(), "clusterset.local", ask(name, qtype))
	}
	if got := show(r); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if want == "REFUSED" {
		return
	}
	if !r.Authoritative {
		t.Error("not authoritative")
	}
	negative := want == "" || want == "NXDOMAIN"
	if hasSOA := len(r.Ns) == 1 && r.Ns[0].Header().Rrtype == dns.TypeSOA; hasSOA != negative {
		t.Errorf("SOA in authority is %v, want %v", hasSOA, negative)
	}
	for _, rr := range append(r.Answer, r.Ns...) {
		if rr.Header().Ttl != 5 {
			t.Errorf("TTL %d in %s", rr.Header().Ttl, rr)
		}
	}
	for _, rr := range r.Answer {
		if rr.Header().Name != name {
			t.Errorf("answered under another name: %s", rr)
		}
	}
}

func TestAnswerSRVCarriesAddresses(t *testing.T) {
	r := Answer(testTable(), "clusterset.local", ask("_sql._tcp.db.data.svc.clusterset.local.", "SRV").SetEdns0(4096, true))
	got := map[string]bool{}
	for _, rr := range r.Extra[:len(r.Extra)-1] {
		got[rr.Header().Name+" "+strings.TrimPrefix(rr.String(), rr.Header().String())] = true
	}
	for _, want := range []string{
		"db-0.us-east.db.data.svc.clusterset.local. 10.1.1.5", "db-0.us-east.db.data.svc.clusterset.local. fd00::5",
		"db-0.us-west.db.data.svc.clusterset.local. 10.2.1.5", "10-2-1-6.us-west.db.data.svc.clusterset.local. 10.2.1.6",
	} {
		if !got[want] {
			t.Errorf("no additional record %q in %v", want, got)
		}
	}
	if opt := r.IsEdns0(); opt == nil || !opt.Do() || opt.UDPSize() != udpSize || r.Extra[len(r.Extra)-1] != opt {
		t.Errorf("EDNS0 answer %v", opt)
	}
}

func TestAnswerProtocol(t *testing.T) {
	const qname = "serve.default.svc.clusterset.local."
	for _, c := range []struct {
		what string
		edit func(*dns.Msg)
		want int
	}{
		{"plain", func(*dns.Msg) {}, dns.RcodeSuccess},
		{"other opcode", func(q *dns.Msg) { q.Opcode = dns.OpcodeUpdate }, dns.RcodeNotImplemented},
		{"no question", func(q *dns.Msg) { q.Question = nil }, dns.RcodeFormatError},
		{"two questions", func(q *dns.Msg) { q.Question = append(q.Question, q.Question[0]) }, dns.RcodeFormatError},
		{"an answer", func(q *dns.Msg) { q.Response = true }, dns.RcodeFormatError},
		{"class CH", func(q *dns.Msg) { q.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused},
		{"EDNS version 1", func(q *dns.Msg) { q.SetEdns0(4096, false); q.IsEdns0().SetVersion(1) }, dns.RcodeBadVers},
		{"two OPT", func(q *dns.Msg) { q.SetEdns0(4096, false); q.SetEdns0(512, false) }, dns.RcodeFormatError},
	} {
		q := ask(qname, "A")
		c.edit(q)
		r := Answer(testTable(), DefaultZone, q)
		if r.Rcode != c.want || !r.Response || r.Id != q.Id {
			t.Errorf("%s: got %s, want %s", c.what, dns.RcodeToString[r.Rcode], dns.RcodeToString[c.want])
		}
		if _, err := r.Pack(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestAnswerUnknownTableIsNotEmpty(t *testing.T) {
	for _, qname := range []string{"serve.default.svc.clusterset.local.", "nothing.clusterset.local."} {
		r := Answer(nil, DefaultZone, ask(qname, "A"))
		if r.Rcode != dns.RcodeServerFailure || len(r.Ns) != 0 {
			t.Errorf("%s: %v", qname, r)
		}
	}
	if r := Answer(nil, DefaultZone, ask("example.org.", "A")); r.Rcode != dns.RcodeRefused {
		t.Errorf("other zone: %v", r)
	}
}

func TestAnswerRotatesHeadless(t *testing.T) {
	first := map[string]int{}
	for id := range uint16(300) {
		q := ask("db.data.svc.clusterset.local.", "A")
		q.Id = id
		r := Answer(testTable(), DefaultZone, q)
		first[r.Answer[0].(*dns.A).A.String()]++
	}
	if len(first) != 3 {
		t.Fatalf("first answers %v, want all three addresses", first)
	}
	for ip, n := range first {
		if n < 50 {
			t.Errorf("%s came first only %d times", ip, n)
		}
	}
}

// Two listeners at one address have names of their own, and each its own port.
func TestListenersOfOneAddress(t *testing.T) {
	workers := Service{Name: name("data/workers"), Headless: true, Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}}
	for i, host := range []string{"w-0", "w-1"} {
		e := endpoint(host, "us-east", "10.1.1.5")
		e.Ports = []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: uint16(8080 + i)}}
		workers.Endpoints = append(workers.Endpoints, e)
	}
	table := NewTable([]Service{workers})
	for _, c := range []struct{ name, kind, want string }{
		{"workers.data.svc.clusterset.local.", "A", "10.1.1.5"},
		{"w-0.us-east.workers.data.svc.clusterset.local.", "A", "10.1.1.5"},
		{"w-1.us-east.workers.data.svc.clusterset.local.", "A", "10.1.1.5"},
		{"w-2.us-east.workers.data.svc.clusterset.local.", "A", "NXDOMAIN"},
	} {
		if got := show(Answer(table, DefaultZone, ask(c.name, c.kind))); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, c.kind, got, c.want)
		}
	}
	var got []string
	for _, rr := range Answer(table, DefaultZone, ask("_http._tcp.workers.data.svc.clusterset.local.", "SRV")).Answer {
		r := rr.(*dns.SRV)
		got = append(got, fmt.Sprint(strings.Split(r.Target, ".")[0], ":", r.Port))
	}
	if slices.Sort(got); !slices.Equal(got, []string{"w-0:8080", "w-1:8081"}) {
		t.Errorf("SRV: %q", got)
	}
}

func TestAnswerOtherZone(t *testing.T) {
	r := Answer(testTable(), "Mesh.Example.", ask("serve.default.svc.mesh.example.", "A"))
	if got := show(r); got != "10.255.0.1" {
		t.Errorf("got %q", got)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, qname := range []string{"serve.default.svc.clusterset.local.", "_sql._tcp.db.data.svc.clusterset.local.",
		"db-0.us-east.db.data.svc.clusterset.local.", "clusterset.local.", ".", `\000\.x.svc.clusterset.local.`} {
		for _, qtype := range []string{"A", "SRV", "TXT", "ANY", "SOA"} {
			b, err := ask(qname, qtype).SetEdns0(1232, true).Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	table := testTable()
	f.Fuzz(func(t *testing.T, packet []byte) {
		q := new(dns.Msg)
		if q.Unpack(packet) != nil {
			return
		}
		before := q.String()
		r := Answer(table, DefaultZone, q)
		if q.String() != before {
			t.Error("the query was changed")
		}
		if !r.Response || r.Id != q.Id {
			t.Errorf("not an answer: %v", r)
		}
		if Answer(table, DefaultZone, q).String() != r.String() {
			t.Error("two answers to one query")
		}
		r.Truncate(dns.MinMsgSize)
		if b, err := r.Pack(); err != nil {
			t.Errorf("pack: %v\n%v", err, r)
		} else if len(b) > dns.MinMsgSize {
			t.Errorf("%d bytes after truncation", len(b))
		}
	})
}
