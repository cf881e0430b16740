package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// run starts a server and stops it, waiting, when the test ends.
func run(t *testing.T, cfg Config, table func() *Table) *Server {
	t.Helper()
	s := New(cfg, table)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Run does not stop")
		}
	})
	return s
}

func (s *Server) listeners() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.serving)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("did not happen: %s", what)
}

func exchangeWith(t *testing.T, network string, addr netip.AddrPort, q *dns.Msg) *dns.Msg {
	t.Helper()
	c := &dns.Client{Net: network, Timeout: 5 * time.Second}
	r, _, err := c.Exchange(q, addr.String())
	if err != nil {
		t.Fatalf("%s %s: %v", network, q.Question[0].Name, err)
	}
	return r
}

func TestServerUDPAndTCP(t *testing.T) {
	addr := testutil.FreePort(t)
	var table atomic.Pointer[Table]
	s := run(t, Config{Listen: []netip.AddrPort{addr}}, table.Load)
	eventually(t, "two listeners", func() bool { return s.listeners() == 2 })
	for _, network := range []string{"udp", "tcp"} {
		if r := exchangeWith(t, network, addr, ask("serve.default.svc.clusterset.local.", "A")); r.Rcode != dns.RcodeServerFailure {
			t.Errorf("%s before the table is known: %v", network, r)
		}
	}
	table.Store(testTable())
	for _, network := range []string{"udp", "tcp"} {
		if got := show(exchangeWith(t, network, addr, ask("1.0.255.10.in-addr.arpa.", "PTR"))); got != "serve.default.svc.clusterset.local." {
			t.Errorf("%s: PTR: got %q", network, got)
		}
		if got := show(exchangeWith(t, network, addr, ask("serve.default.svc.clusterset.local.", "A"))); got != "10.255.0.1" {
			t.Errorf("%s: got %q", network, got)
		}
		r := exchangeWith(t, network, addr, ask("example.org.", "A"))
		if r.Rcode != dns.RcodeRefused || r.RecursionAvailable {
			t.Errorf("%s without upstreams: %v", network, r)
		}
	}
	if p := s.Problems(); len(p) != 0 {
		t.Errorf("problems %v", p)
	}
}

func bigTable() *Table {
	s := Service{Name: name("default/big"), Headless: true, Ports: []clustermesh.ServicePort{{Name: "p", Proto: l4.TCP, Port: 1}}}
	for i := range 200 {
		s.Endpoints = append(s.Endpoints, endpoint("", "us-east", fmt.Sprintf("10.1.0.%d", i+1)))
	}
	return NewTable([]Service{s})
}

func TestServerTruncatesOverUDP(t *testing.T) {
	addr := testutil.FreePort(t)
	s := run(t, Config{Listen: []netip.AddrPort{addr}}, bigTable)
	eventually(t, "two listeners", func() bool { return s.listeners() == 2 })
	const qname = "big.default.svc.clusterset.local."
	for _, c := range []struct {
		network string
		edns    uint16
		limit   int
		whole   bool
	}{
		{"udp", 0, 512, false}, {"udp", 100, 512, false}, {"udp", 1000, 1000, false},
		{"udp", 65535, udpSize, false}, {"tcp", 0, 65535, true}, {"tcp", 1232, 65535, true},
	} {
		q := ask(qname, "A")
		if c.edns > 0 {
			q.SetEdns0(c.edns, false)
		}
		conn, err := net.Dial(c.network, addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		co := &dns.Conn{Conn: conn, UDPSize: 65535}
		if err := co.WriteMsg(q); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		raw, err := co.ReadMsgHeader(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := new(dns.Msg)
		if err := r.Unpack(raw); err != nil {
			t.Fatal(err)
		}
		if len(raw) > c.limit || r.Truncated == c.whole || (len(r.Answer) == 200) != c.whole || len(r.Answer) < 10 {
			t.Errorf("%+v: %d bytes, %d records, truncated %v", c, len(raw), len(r.Answer), r.Truncated)
		}
	}
	// Go's own resolver sees TC and asks again over TCP.
	ips, err := goResolver(addr).LookupHost(t.Context(), strings.TrimSuffix(qname, "."))
	if err != nil || len(ips) != 200 {
		t.Errorf("the Go resolver got %d addresses: %v", len(ips), err)
	}
}

func goResolver(addr netip.AddrPort) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr.String())
	}}
}

func TestServerGoResolver(t *testing.T) {
	addr := testutil.FreePort(t)
	s := run(t, Config{Listen: []netip.AddrPort{addr}}, testTable)
	eventually(t, "two listeners", func() bool { return s.listeners() == 2 })
	r := goResolver(addr)
	ips, err := r.LookupHost(t.Context(), "serve.default.svc.clusterset.local.")
	slices.Sort(ips)
	if err != nil || !slices.Equal(ips, []string{"10.255.0.1", "fd00:255::1"}) {
		t.Errorf("got %v, %v", ips, err)
	}
	_, err = r.LookupHost(t.Context(), "none.default.svc.clusterset.local.")
	if d := (*net.DNSError)(nil); !errors.As(err, &d) || !d.IsNotFound {
		t.Errorf("unknown name: %v", err)
	}
	_, srvs, err := r.LookupSRV(t.Context(), "http", "tcp", "serve.default.svc.clusterset.local.")
	if err != nil || len(srvs) != 1 || srvs[0].Port != 80 || srvs[0].Target != "serve.default.svc.clusterset.local." {
		t.Errorf("SRV %v, %v", srvs, err)
	}
}

func TestServerAddressInUseOrAbsent(t *testing.T) {
	good, busy := testutil.FreePort(t), testutil.FreePort(t)
	absent := netip.MustParseAddrPort("192.0.2.1:5353")
	holder, err := net.ListenPacket("udp", busy.String())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	s := run(t, Config{Listen: []netip.AddrPort{busy, absent, good}}, testTable)
	eventually(t, "three listeners, three problems", func() bool { return s.listeners() == 3 && len(s.Problems()) == 3 })
	if got := show(exchangeWith(t, "udp", good, ask("serve.default.svc.clusterset.local.", "A"))); got != "10.255.0.1" {
		t.Errorf("the other address does not serve: %q", got)
	}
	var text []string
	for _, p := range s.Problems() {
		text = append(text, p.String())
	}
	for _, want := range []string{
		"dns: listen " + busy.String() + "/udp: the address is in use by another program; stop that program",
		"dns: listen 192.0.2.1:5353/tcp: this machine does not have the address; add the address",
		"dns: listen 192.0.2.1:5353/udp: this machine does not have the address; add the address",
	} {
		if !slices.ContainsFunc(text, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("no problem %q in %q", want, text)
		}
	}
	holder.Close()
	eventually(t, "the address is taken when it is free", func() bool { return s.listeners() == 4 && len(s.Problems()) == 2 })
	if got := show(exchangeWith(t, "udp", busy, ask("serve.default.svc.clusterset.local.", "A"))); got != "10.255.0.1" {
		t.Errorf("got %q", got)
	}
}

// upstream answers A queries with an address, or with silence if none is given.
func upstream(t *testing.T, ip string) netip.AddrPort {
	t.Helper()
	addr := testutil.FreePort(t)
	for _, network := range []string{"udp", "tcp"} {
		started := make(chan struct{})
		srv := &dns.Server{Net: network, Addr: addr.String(), NotifyStartedFunc: func() { close(started) },
			Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
				if ip == "" {
					return
				}
				r := new(dns.Msg).SetReply(q)
				rr, err := dns.NewRR(q.Question[0].Name + " 60 A " + ip)
				if err != nil {
					t.Error(err)
				}
				r.Answer = []dns.RR{rr}
				if err := w.WriteMsg(r); err != nil {
					t.Error(err)
				}
			})}
		go srv.ListenAndServe() //nolint:errcheck // ends with Shutdown
		<-started
		t.Cleanup(func() { srv.Shutdown() }) //nolint:errcheck // the test is over
	}
	return addr
}

func TestServerForwards(t *testing.T) {
	addr := testutil.FreePort(t)
	up := upstream(t, "203.0.113.9")
	s := run(t, Config{Listen: []netip.AddrPort{addr}, Upstreams: []netip.AddrPort{up}}, func() *Table { return nil })
	eventually(t, "two listeners", func() bool { return s.listeners() == 2 })
	for _, network := range []string{"udp", "tcp"} {
		q := ask("example.org.", "A")
		q.Id = 4711
		r := exchangeWith(t, network, addr, q)
		if show(r) != "203.0.113.9" || r.Id != 4711 {
			t.Errorf("%s: %v", network, r)
		}
		// The clusterset's zone never leaves, known or not.
		if r := exchangeWith(t, network, addr, ask("x.clusterset.local.", "A")); r.Rcode != dns.RcodeServerFailure {
			t.Errorf("%s: %v", network, r)
		}
	}
}

func TestServerForwardsPastADeadUpstream(t *testing.T) {
	addr := testutil.FreePort(t)
	dead, alive := upstream(t, ""), upstream(t, "203.0.113.9")
	s := run(t, Config{Listen: []netip.AddrPort{addr}, Upstreams: []netip.AddrPort{dead, alive}}, testTable)
	eventually(t, "two listeners", func() bool { return s.listeners() == 2 })
	if r := exchangeWith(t, "udp", addr, ask("example.org.", "A")); show(r) != "203.0.113.9" {
		t.Errorf("first question: %v", r)
	}
	start := time.Now()
	if r := exchangeWith(t, "udp", addr, ask("example.org.", "A")); show(r) != "203.0.113.9" {
		t.Errorf("second question: %v", r)
	}
	if took := time.Since(start); took > upstreamTimeout/2 {
		t.Errorf("the second question took %s: the dead upstream was asked first again", took)
	}
	p := s.Problems()
	if len(p) != 1 || !p[0].Warning || !strings.Contains(p[0].String(), dead.String()+": no answer within 2s") {
		t.Errorf("problems %v", p)
	}
}

func TestServerNoUpstreamAnswers(t *testing.T) {
	addr := testutil.FreePort(t)
	nobody := testutil.FreePort(t) // refuses
	s := run(t, Config{Listen: []netip.AddrPort{addr}, Upstreams: []netip.AddrPort{nobody}}, testTable)
	eventually(t, "two listeners", func() bool { return s.listeners() == 2 })
	if r := exchangeWith(t, "udp", addr, ask("example.org.", "A")); r.Rcode != dns.RcodeServerFailure {
		t.Errorf("got %v", r)
	}
}

func TestNewForwarderRefusesBadUpstreams(t *testing.T) {
	own := netip.AddrPortFrom(loopback, 53)
	var upstreams []netip.AddrPort
	for _, text := range []string{"10.0.0.1:53", "[fd00::2]:53", "127.0.0.1:53", "10.0.0.3:0"} {
		upstreams = append(upstreams, netip.MustParseAddrPort(text))
	}
	f := newForwarder(upstreams, []netip.AddrPort{own})
	if want := []string{"10.0.0.1:53", "[fd00::2]:53"}; !slices.Equal(f.upstreams, want) {
		t.Errorf("upstreams %v, want %v", f.upstreams, want)
	}
	var text []string
	for _, p := range f.problems() {
		text = append(text, p.String())
	}
	if len(text) != 2 || !strings.HasPrefix(text[0], "dns: upstreams[2]: 127.0.0.1:53 is this server") ||
		!strings.HasPrefix(text[1], "dns: upstreams[3]: 10.0.0.3:0 has no port") {
		t.Errorf("problems %q", text)
	}
}
