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

func testTable() *Table {
	db := Service{Name: name("data/db"), Headless: true,
		Ports: []clustermesh.ServicePort{{Name: "sql", Proto: l4.TCP, Port: 5432}, {Name: "web", Proto: l4.TCP, Port: 80}},
		Endpoints: []Endpoint{
			endpoint("db-0", "us-east", "10.1.1.5"), endpoint("db-0", "us-east", "fd00::5"),
			endpoint("db-0", "us-west", "10.2.1.5"), endpoint("", "us-west", "10.2.1.6"),
		}}
	db.Endpoints[2].Ports = []clustermesh.EndpointPort{{Name: "sql", Proto: l4.TCP, Port: 6543}}
	return NewTable([]Service{
		{Name: name("default/serve"), IPs: addrs("10.255.0.1", "fd00:255::1"), Ports: []clustermesh.ServicePort{
			{Name: "http", Proto: l4.TCP, Port: 80}, {Name: "udp", Proto: l4.UDP, Port: 5353}, {Name: "dup", Proto: l4.UDP, Port: 80}}},
		{Name: name("default/plain"), IPs: addrs("10.255.0.2"), Ports: []clustermesh.ServicePort{{Proto: l4.TCP, Port: 42}}},
		{Name: name("default/pending"), Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}},
		{Name: name("data/empty"), Headless: true, Ports: []clustermesh.ServicePort{{Name: "sql", Proto: l4.TCP, Port: 5432}}},
		db,
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

func TestAnswer(t *testing.T) {
	const nodata, nx, refused = "", "NXDOMAIN", "REFUSED"
	for _, c := range []struct{ name, qtype, want string }{
		{"dns-version.clusterset.local.", "TXT", `"1.0.0"`},
		{"dns-version.clusterset.local.", "A", nodata},
		{"clusterset.local.", "SOA", "ns.dns.clusterset.local. hostmaster.clusterset.local. 1 7200 1800 86400 5"},
		{"clusterset.local.", "A", nodata},
		{"svc.clusterset.local.", "A", nodata},
		{"default.svc.clusterset.local.", "A", nodata},
		{"nowhere.svc.clusterset.local.", "A", nx},
		{"other.clusterset.local.", "A", nx},

		{"serve.default.svc.clusterset.local.", "A", "10.255.0.1"},
		{"serve.default.svc.clusterset.local.", "AAAA", "fd00:255::1"},
		{"serve.default.svc.clusterset.local.", "ANY", `"RFC8482" ""`},
		{"none.default.svc.clusterset.local.", "ANY", nx},
		{"serve.default.svc.clusterset.local.", "MX", nodata},
		{"SERVE.Default.svc.ClusterSet.LOCAL.", "A", "10.255.0.1"},
		{"plain.default.svc.clusterset.local.", "AAAA", nodata},
		{"pending.default.svc.clusterset.local.", "A", nodata},
		{"none.default.svc.clusterset.local.", "A", nx},
		{"serve.data.svc.clusterset.local.", "A", nx},
		{"us-east.serve.default.svc.clusterset.local.", "A", nx},
		{"x.us-east.serve.default.svc.clusterset.local.", "A", nx},
		{"a.b.c.serve.default.svc.clusterset.local.", "A", nx},
		{`serve\.default.svc.clusterset.local.`, "A", nx},

		{"_http._tcp.serve.default.svc.clusterset.local.", "SRV", "0 100 80 serve.default.svc.clusterset.local."},
		{"_HTTP._TCP.serve.default.svc.clusterset.local.", "SRV", "0 100 80 serve.default.svc.clusterset.local."},
		{"_udp._udp.serve.default.svc.clusterset.local.", "SRV", "0 100 5353 serve.default.svc.clusterset.local."},
		{"_http._udp.serve.default.svc.clusterset.local.", "SRV", nx},
		{"_http._tcp.serve.default.svc.clusterset.local.", "A", nodata},
		{"_tcp.serve.default.svc.clusterset.local.", "SRV", nodata},
		{"_sctp.serve.default.svc.clusterset.local.", "SRV", nx},
		{"_._tcp.plain.default.svc.clusterset.local.", "SRV", nx},
		// Every port once by target and number, the unnamed as well (conformance specs 19 and 23).
		{"serve.default.svc.clusterset.local.", "SRV",
			"0 100 5353 serve.default.svc.clusterset.local.\n0 100 80 serve.default.svc.clusterset.local."},
		{"plain.default.svc.clusterset.local.", "SRV", "0 100 42 plain.default.svc.clusterset.local."},

		{"db.data.svc.clusterset.local.", "A", "10.1.1.5\n10.2.1.5\n10.2.1.6"},
		{"db.data.svc.clusterset.local.", "AAAA", "fd00::5"},
		{"db-0.us-east.db.data.svc.clusterset.local.", "A", "10.1.1.5"},
		{"db-0.us-east.db.data.svc.clusterset.local.", "AAAA", "fd00::5"},
		{"db-0.us-west.db.data.svc.clusterset.local.", "AAAA", nodata},
		{"10-2-1-6.us-west.db.data.svc.clusterset.local.", "A", "10.2.1.6"},
		{"db-1.us-west.db.data.svc.clusterset.local.", "A", nx},
		{"us-west.db.data.svc.clusterset.local.", "A", nx},
		{"empty.data.svc.clusterset.local.", "A", nx},
		{"_sql._tcp.empty.data.svc.clusterset.local.", "SRV", nx},
		{"_sql._tcp.db.data.svc.clusterset.local.", "SRV", "0 100 5432 10-2-1-6.us-west.db.data.svc.clusterset.local.\n" +
			"0 100 5432 db-0.us-east.db.data.svc.clusterset.local.\n0 100 6543 db-0.us-west.db.data.svc.clusterset.local."},

		{"example.org.", "A", refused},
		{".", "NS", refused},
		{"notclusterset.local.", "A", refused},
		{"clusterset.local.", "AXFR", refused},
	} {
		r := Answer(testTable(), "clusterset.local", ask(c.name, c.qtype))
		if got := show(r); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.name, c.qtype, got, c.want)
		}
		if c.want == refused {
			continue
		}
		if !r.Authoritative {
			t.Errorf("%s %s: not authoritative", c.name, c.qtype)
		}
		negative := c.want == nodata || c.want == nx
		if hasSOA := len(r.Ns) == 1 && r.Ns[0].Header().Rrtype == dns.TypeSOA; hasSOA != negative {
			t.Errorf("%s %s: SOA in authority is %v, want %v", c.name, c.qtype, hasSOA, negative)
		}
		for _, rr := range append(r.Answer, r.Ns...) {
			if rr.Header().Ttl != 5 {
				t.Errorf("%s %s: TTL %d in %s", c.name, c.qtype, rr.Header().Ttl, rr)
			}
		}
		for _, rr := range r.Answer {
			if rr.Header().Name != c.name {
				t.Errorf("%s: answered under another name: %s", c.name, rr)
			}
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
