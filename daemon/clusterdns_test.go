package daemon

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/clusterdns"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/coredns"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// fakeDNS is a cluster's DNS, and the API server that knows it.
type fakeDNS struct {
	server       coredns.Server
	err          error
	sight        clusterdns.Sight
	finds, looks int
	asked        netip.AddrPort
}

func (f *fakeDNS) watch(c DNSConfig) *dnsWatch {
	w := newDNSWatch(c, func(context.Context) (coredns.Server, error) { f.finds++; return f.server, f.err }, notify.New())
	w.look = func(_ context.Context, at netip.AddrPort, _ string) clusterdns.Sight {
		f.looks, f.asked = f.looks+1, at
		return f.sight
	}
	return w
}

// TestDNSWatch: what the leader reports of a cluster's DNS, and what it asks for that.
func TestDNSWatch(t *testing.T) {
	at, cart := netip.MustParseAddrPort("10.96.0.10:53"), clustermesh.ServiceName{Namespace: "shop", Name: "cart"}
	f := &fakeDNS{server: coredns.Server{Service: "kube-system/kube-dns", Addr: at, Images: []string{"coredns:v1.12.2"}, Marked: true}, sight: clusterdns.Lacks}
	w := f.watch(DNSConfig{})
	now := time.Unix(1_000_000, 0)
	look := func(times int) (code problem.Code, warning bool) {
		for range times {
			now = now.Add(lookEvery)
			w.once(t.Context(), now)
		}
		for _, p := range w.problems() {
			code, warning = p.Code, p.Warning
		}
		return code, warning
	}
	poked := func() bool {
		select {
		case <-w.changed:
			return true
		default:
			return false
		}
	}

	if code, _ := look(5); code != "" || f.finds+f.looks > 0 {
		t.Errorf("without a name to look up: %q, asked %d times", code, f.finds+f.looks)
	}
	w.uses(cart)
	if code, _ := look(2); code != "" || poked() {
		t.Errorf("after two looks: %q", code)
	}
	if code, warning := look(1); code != problem.ZoneNotServed || warning || !poked() || f.asked != at {
		t.Errorf("after three looks at %s: %q, warning %v", f.asked, code, warning)
	}
	if f.finds > 2 {
		t.Errorf("asked the API server %d times for three looks", f.finds)
	}
	f.server.Images = []string{"coredns:v1.11.3"}
	if code, _ := look(3); code != problem.CoreDNSOld || !poked() {
		t.Errorf("with an old CoreDNS: %q", code)
	}
	f.err = errors.New("the API server does not answer")
	if code, _ := look(3); code != problem.CoreDNSOld {
		t.Errorf("while the API server does not answer: %q", code)
	}
	f.err, f.server.Images, f.sight = nil, []string{"coredns:v1.12.2"}, clusterdns.Answers
	if code, _ := look(3); code != "" || !poked() {
		t.Errorf("when the DNS answers: %q", code)
	}
	before := f.finds
	if look(60); f.finds-before > 3 {
		t.Errorf("asked the API server %d times in two minutes in which all is well", f.finds-before)
	}
	f.sight = clusterdns.Lacks
	look(3)
	if w.forget(); len(w.problems()) > 0 || !poked() {
		t.Errorf("a node that does not lead reports %v", w.problems())
	}
}

// TestDNSWatchConfigured: the configuration names the server, or says that none is to be asked.
func TestDNSWatchConfigured(t *testing.T) {
	f := &fakeDNS{server: coredns.Server{Marked: true}, sight: clusterdns.Lacks}
	w := f.watch(DNSConfig{Probe: AddrOrOff{Addr: netip.MustParseAddrPort("192.0.2.1:53")}})
	w.uses(clustermesh.ServiceName{Namespace: "shop", Name: "cart"})
	for i := range 3 {
		w.once(t.Context(), time.Unix(1_000_000+int64(i)*2, 0))
	}
	if p := w.problems(); len(p) != 1 || f.asked != w.config.Probe.Addr {
		t.Errorf("asked %s: %v", f.asked, p)
	}
	f = &fakeDNS{}
	w = f.watch(DNSConfig{Probe: AddrOrOff{Off: true}})
	w.uses(clustermesh.ServiceName{Namespace: "shop", Name: "cart"})
	if err := w.run(t.Context()); err != nil || f.finds+f.looks > 0 {
		t.Errorf("off: %v, asked %d times", err, f.finds+f.looks)
	}
}

func TestForeignName(t *testing.T) {
	of := func(ns, name string, exporters ...clustermesh.ClusterName) *plan.Import {
		return &plan.Import{Import: &clustermesh.Import{Service: clustermesh.ServiceName{Namespace: ns, Name: name}, Exporters: exporters}}
	}
	r := plan.Result{Imports: []*plan.Import{of("away", "a", "c2"), of("shop", "b", "c1"), of("shop", "c", "c1", "c2")}}
	for _, tc := range []struct {
		namespaces []string
		want       string
	}{
		{[]string{"default", "shop"}, "shop/c"}, // not the cluster's own alone
		{[]string{"default"}, "/"},              // no name resolves where the namespace is missing
		{nil, "away/a"},                         // namespaces are not known, so all count
		{[]string{}, "/"},
	} {
		if got := foreignName(r, tc.namespaces, "c1"); got.Namespace+"/"+got.Name != tc.want {
			t.Errorf("%q: %v, want %s", tc.namespaces, got, tc.want)
		}
	}
}
