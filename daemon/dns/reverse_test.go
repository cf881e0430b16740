package dns

import (
	"testing"

	"github.com/miekg/dns"
)

// What is no address of a Service is for an upstream.
func TestAnswerReverseOfOthers(t *testing.T) {
	for _, name := range []string{
		"9.9.9.10.in-addr.arpa.", "01.0.255.10.in-addr.arpa.", "+1.0.255.10.in-addr.arpa.", "0.255.10.in-addr.arpa.",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.5.5.2.0.0.0.d.f.ip6.arpa.", "serve.default.svc.clusterset.local.", ".",
	} {
		if r, is := AnswerReverse(testTable(), DefaultZone, ask(name, "PTR")); is {
			t.Errorf("%s: answered %v", name, r)
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
