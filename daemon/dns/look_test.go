package dns

import (
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"strait.io/strait/daemon/clusterdns"
)

// TestLook asks servers on loopback: strait's own, and some that behave like a cluster's DNS without the zone.
func TestLook(t *testing.T) {
	known := func() *Table { return NewTable(nil) }
	own := func(table func() *Table) dns.HandlerFunc {
		return func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(Answer(table(), DefaultZone, q)) }
	}
	// A cluster's DNS gives every name outside the cluster this code, and knows the name of its own address.
	cluster := func(rcode int) dns.HandlerFunc {
		return func(w dns.ResponseWriter, q *dns.Msg) {
			r := new(dns.Msg).SetRcode(q, rcode)
			if q.Question[0].Qtype == dns.TypePTR {
				r.Rcode = dns.RcodeSuccess
				r.Answer = []dns.RR{&dns.PTR{Hdr: header(q.Question[0].Name, dns.TypePTR), Ptr: "kube-dns.kube-system.svc.cluster.local."}}
			}
			_ = w.WriteMsg(r)
		}
	}
	onlyFails := func(w dns.ResponseWriter, q *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(q, dns.RcodeServerFailure))
	}
	silentAboutZone := func(w dns.ResponseWriter, q *dns.Msg) {
		if q.Question[0].Qtype == dns.TypePTR {
			cluster(dns.RcodeSuccess)(w, q)
		}
	}
	for name, tc := range map[string]struct {
		server dns.HandlerFunc
		want   clusterdns.Sight
	}{
		"it answers":                               {own(known), clusterdns.Answers},
		"no such name":                             {cluster(dns.RcodeNameError), clusterdns.Lacks},
		"refused":                                  {cluster(dns.RcodeRefused), clusterdns.Lacks},
		"a name without this record":               {cluster(dns.RcodeSuccess), clusterdns.Lacks},
		"its upstreams cannot be reached":          {cluster(dns.RcodeServerFailure), clusterdns.Lacks},
		"its upstreams do not answer":              {silentAboutZone, clusterdns.Lacks},
		"it starts, and knows nothing yet":         {onlyFails, clusterdns.Unknown},
		"no answer at all":                         {func(dns.ResponseWriter, *dns.Msg) {}, clusterdns.Unknown},
		"strait answers, and knows no service yet": {own(func() *Table { return nil }), clusterdns.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &dns.Server{PacketConn: conn, Handler: tc.server}
			done := make(chan error, 1)
			go func() { done <- s.ActivateAndServe() }()
			t.Cleanup(func() {
				conn.Close()
				<-done
			})
			at := conn.LocalAddr().(*net.UDPAddr).AddrPort()
			if got := Look(t.Context(), netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), DefaultZone); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
