package dns

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// upstreamOf serves a zone cluster.local that has one Service, fails for another, and knows no more.
func upstreamOf(t *testing.T) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r := new(dns.Msg).SetReply(q)
		switch q.Question[0].Name {
		case "here.default.svc.cluster.local.":
			r.Answer = []dns.RR{&dns.A{Hdr: header(q.Question[0].Name, dns.TypeA), A: net.IPv4(10, 96, 0, 1)}}
		case "broken.default.svc.cluster.local.":
			r.Rcode = dns.RcodeServerFailure
		case "default.svc.cluster.local.":
		default:
			r.Rcode = dns.RcodeNameError
			r.Ns = []dns.RR{&dns.SOA{Hdr: header("cluster.local.", dns.TypeSOA), Ns: "own.", Mbox: "own."}}
		}
		_ = w.WriteMsg(r)
	})}
	done := make(chan error, 1)
	go func() { done <- srv.ActivateAndServe() }()
	t.Cleanup(func() {
		_ = srv.ShutdownContext(context.Background())
		<-done
	})
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

func localTable() *Table {
	return NewTable([]Service{
		{Name: name("default/serve"), IPs: addrs("241.0.0.1")},
		{Name: name("default/here"), IPs: addrs("241.0.0.2")},
		{Name: name("default/broken"), IPs: addrs("241.0.0.3")},
		{Name: name("com/github"), IPs: addrs("241.0.0.4")},
		{Name: name("shop/cart"), IPs: addrs("241.0.0.5")},
	}, "shop")
}

// TestFallThrough: a local name is the cluster's own as long as it exists there, or may exist; then it
// is the clusterset's.
func TestFallThrough(t *testing.T) {
	const nodata, nx, fail, refused = "", "NXDOMAIN", "SERVFAIL", "REFUSED"
	own := upstreamOf(t)
	for _, c := range []struct {
		name, zone string
		upstream   bool
		qname      string
		known      bool
		want       string
	}{
		{"a Service of the cluster", "cluster.local", true, "here.default.svc.cluster.local.", true, "10.96.0.1"},
		{"none, but an import", "cluster.local", true, "serve.default.svc.cluster.local.", true, "241.0.0.1"},
		{"case", "Cluster.Local.", true, "Serve.default.SVC.cluster.local.", true, "241.0.0.1"},
		{"neither", "cluster.local", true, "none.default.svc.cluster.local.", true, nx},
		{"the cluster's DNS fails", "cluster.local", true, "broken.default.svc.cluster.local.", true, fail},
		{"imports are not known yet", "cluster.local", true, "serve.default.svc.cluster.local.", false, fail},
		{"a Service of the cluster meanwhile", "cluster.local", true, "here.default.svc.cluster.local.", false, "10.96.0.1"},
		{"a name with no records", "cluster.local", true, "default.svc.cluster.local.", true, nodata},
		{"no Service's name", "cluster.local", true, "dns-version.cluster.local.", true, nx},
		{"another zone", "cluster.local", true, "serve.default.svc.other.local.", true, nx},
		{"not configured", "", true, "serve.default.svc.cluster.local.", true, nx},
		{"the clusterset's own", "cluster.local", true, "serve.default.svc.clusterset.local.", true, "241.0.0.1"},
		{"forwarded by the cluster's DNS", "cluster.local", false, "serve.default.svc.cluster.local.", true, "241.0.0.1"},
		{"forwarded, and not there", "cluster.local", false, "none.default.svc.cluster.local.", true, nx},
		{"a name outside, by the search path", "cluster.local", true, "github.com.svc.cluster.local.", true, nx},
		{"below it", "cluster.local", true, "a.github.COM.svc.cluster.local.", true, nx},
		{"the same, forwarded", "cluster.local", false, "github.com.svc.cluster.local.", true, nx},
		{"the domain itself", "cluster.local", false, "com.svc.cluster.local.", true, nx},
		{"it has a name in the clusterset", "cluster.local", true, "github.com.svc.clusterset.local.", true, "241.0.0.4"},
		{"a namespace of the cluster's own that is a domain, too", "cluster.local", true, "cart.shop.svc.cluster.local.", true, "241.0.0.5"},
		{"forwarded, another name", "cluster.local", false, "example.org.", true, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := localTable
			if !c.known {
				table = func() *Table { return nil }
			}
			cfg := Config{FallThrough: c.zone}
			if c.upstream {
				cfg.Upstreams = []netip.AddrPort{own}
			}
			r := New(cfg, table).answer(t.Context(), "udp", ask(c.qname, "A"))
			if got := show(r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for _, rr := range r.Answer {
				if rr.Header().Name != c.qname {
					t.Errorf("answered under another name: %s", rr)
				}
			}
		})
	}
}

// TestFallThroughKeepsTheOwnAnswer: of a name that exists nowhere, the client gets the answer of the
// cluster's own DNS, and so how long to cache it.
func TestFallThroughKeepsTheOwnAnswer(t *testing.T) {
	s := New(Config{FallThrough: "cluster.local", Upstreams: []netip.AddrPort{upstreamOf(t)}}, localTable)
	r := s.answer(t.Context(), "udp", ask("none.default.svc.cluster.local.", "A"))
	if len(r.Ns) != 1 || r.Ns[0].(*dns.SOA).Ns != "own." {
		t.Errorf("the answer is not the upstream's: %v", r)
	}
}
