package dns

import (
	"testing"

	"github.com/miekg/dns"
)

// The table of 2.3.3 and 2.4.3 of the MCS DNS specification.
func TestAnswerReverse(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"1.0.255.10.in-addr.arpa.", "serve.default.svc.clusterset.local."},
		{"1.0.255.10.IN-ADDR.arpa.", "serve.default.svc.clusterset.local."},
		{"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.5.5.2.0.0.0.d.f.ip6.arpa.", ""},
		{"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.5.5.2.0.0.0.d.f.ip6.arpa.", "serve.default.svc.clusterset.local."},
		{"5.1.1.10.in-addr.arpa.", "db-0.us-east.db.data.svc.clusterset.local."},
		{"6.1.2.10.in-addr.arpa.", "10-2-1-6.us-west.db.data.svc.clusterset.local."},
		{"9.9.9.10.in-addr.arpa.", ""},
		{"01.0.255.10.in-addr.arpa.", ""},
		{"+1.0.255.10.in-addr.arpa.", ""},
		{"0.255.10.in-addr.arpa.", ""},
		{"serve.default.svc.clusterset.local.", ""},
		{".", ""},
	} {
		r, is := AnswerReverse(testTable(), DefaultZone, ask(c.name, "PTR"))
		if is != (c.want != "") || is && (show(r) != c.want || !r.Authoritative) {
			t.Errorf("%s: %v %v, want %q", c.name, is, r, c.want)
		}
	}
	if r, is := AnswerReverse(testTable(), DefaultZone, ask("1.0.255.10.in-addr.arpa.", "A")); is {
		t.Errorf("answered another type: %v", r)
	}
	if r, is := AnswerReverse(nil, DefaultZone, ask("1.0.255.10.in-addr.arpa.", "PTR")); is {
		t.Errorf("answered without a table: %v", r)
	}
}

// An address of a service is the service's, whichever endpoints have it too; equals go by name.
func TestOneNamePerAddress(t *testing.T) {
	shared := addrs("10.255.0.1")
	for range 20 { // maps have no order
		table := NewTable([]Service{
			{Name: name("a/headless"), Headless: true, Endpoints: []Endpoint{endpoint("h", "c", "10.255.0.1")}},
			{Name: name("c/second"), IPs: shared}, {Name: name("b/first"), IPs: shared},
		})
		r, is := AnswerReverse(table, DefaultZone, ask("1.0.255.10.in-addr.arpa.", "PTR"))
		if !is || show(r) != "first.b.svc.clusterset.local." {
			t.Fatalf("%v %v", is, r)
		}
	}
}

func FuzzReversed(f *testing.F) {
	f.Add("1.0.255.10.in-addr.arpa.")
	f.Add("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.5.5.2.0.0.0.d.f.ip6.arpa.")
	f.Fuzz(func(t *testing.T, name string) {
		a, ok := reversed(name)
		if back, err := dns.ReverseAddr(a.String()); ok && (err != nil || back != name) {
			t.Errorf("%q is %s, which is %q: %v", name, a, back, err)
		}
	})
}
