package clients

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"strait.io/strait/internal/l4"
)

const (
	// name has one address of each kind; big has so many that an answer by UDP is cut off.
	name    = "serve.default.svc.clusterset.local."
	bigName = "big.default.svc.clusterset.local."
	bigSize = 200
)

// answer is a DNS server's: what it has is the same everywhere, so that a client cannot tell a backend by it.
func answer(rw dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	if len(q.Question) != 1 {
		m.Rcode = dns.RcodeFormatError
		_ = rw.WriteMsg(m) // a lost answer shows in the client
		return
	}
	n := 1
	switch q.Question[0].Name {
	case name:
	case bigName:
		n = bigSize
	default:
		m.Rcode = dns.RcodeNameError
		n = 0
	}
	for i := range n {
		h := dns.RR_Header{Name: q.Question[0].Name, Rrtype: q.Question[0].Qtype, Class: dns.ClassINET, Ttl: 5}
		switch h.Rrtype {
		case dns.TypeA:
			m.Answer = append(m.Answer, &dns.A{Hdr: h, A: net.IPv4(203, 0, 113, byte(i))})
		case dns.TypeAAAA:
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: h, AAAA: net.ParseIP(fmt.Sprintf("2001:db8:113::%x", i))})
		}
	}
	if _, udp := rw.RemoteAddr().(*net.UDPAddr); udp && n == bigSize {
		m.Answer, m.Truncated = nil, true
	}
	_ = rw.WriteMsg(m)
}

// serveDNS answers at an address over UDP and TCP.
func (w *world) serveDNS(at netip.AddrPort) {
	w.t.Helper()
	var l net.Listener
	var p net.PacketConn
	must(w.t, w.servers.Do(func() (err error) {
		if p, err = net.ListenPacket("udp", at.String()); err != nil {
			return err
		}
		l, err = net.Listen("tcp", at.String())
		return err
	}))
	for _, s := range []*dns.Server{{Listener: l}, {PacketConn: p}} {
		s.Handler = dns.HandlerFunc(answer)
		started, done := make(chan struct{}), make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		go func() {
			defer close(done)
			_ = s.ActivateAndServe() // ends by Shutdown
		}()
		<-started
		w.t.Cleanup(func() {
			if err := s.Shutdown(); err != nil {
				w.t.Error(err)
			}
			<-done
		})
	}
}

func TestDig(t *testing.T) {
	dig := need(t, "dig", "bind9-dnsutils")
	w := newWorld(t)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			w := w.in(t)
			w.serveDNS(netip.AddrPortFrom(f.pod, 5353))
			w.balance(frontend(f.front, 53, l4.UDP, 5353, f.pod), frontend(f.front, 53, l4.TCP, 5353, f.pod))
			ask := func(server netip.Addr, port string, more ...string) []string {
				return append([]string{"@" + server.String(), "-p", port, "+tries=1", "+timeout=5", "+nocookie"}, more...)
			}
			server := func(at netip.Addr, port int, proto string) string {
				return fmt.Sprintf(";; SERVER: %s#%d(%s) (%s)", at, port, at, proto)
			}
			w.prints([]string{"203.0.113.0", "status: NOERROR", server(f.front, 53, "UDP")}, dig, ask(f.front, "53", name, "A")...)
			w.prints([]string{"2001:db8:113::", server(f.front, 53, "TCP")}, dig, ask(f.front, "53", "+tcp", name, "AAAA")...)
			w.prints([]string{"status: NXDOMAIN"}, dig, ask(f.front, "53", "nosuch.test.", "A")...)

			// Cut off by UDP, dig asks again by TCP.
			printed := w.prints([]string{"Truncated, retrying in TCP mode", server(f.front, 53, "TCP")}, dig, ask(f.front, "53", bigName, "A")...)
			if n := strings.Count(printed, "\t203.0.113."); n != bigSize {
				t.Errorf("%d addresses, want %d", n, bigSize)
			}

			// The pod itself. dig complains of a reply from another address than it asked.
			printed = w.prints([]string{"203.0.113.0", server(f.pod, 5353, "UDP")}, dig, ask(f.pod, "5353", name, "A")...)
			if strings.Contains(printed, "unexpected source") {
				t.Errorf("the pod's reply seems to come from elsewhere:\n%s", printed)
			}
		})
	}
}

// TestMusl: the resolver of Alpine's images takes an answer only from the very address that it asked. It asks
// several servers from one socket, without connect(). A frontend's backend serves it under its own address, as
// the frontend, and as both.
func TestMusl(t *testing.T) {
	resolve := compile(t, "musl-gcc", "musl-tools", "resolve.c")
	chroot := need(t, "chroot", "coreutils")
	w := newWorld(t)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			w := w.in(t)
			w.serveDNS(netip.AddrPortFrom(f.pod, 53))
			w.balance(frontend(f.front, 53, l4.UDP, 53, f.pod), frontend(f.front, 53, l4.TCP, 53, f.pod))
			for _, servers := range [][]netip.Addr{{f.pod}, {f.front}, {f.front, f.pod}} {
				t.Run(fmt.Sprint(servers), func(t *testing.T) {
					w := w.in(t)
					w.resolves(chroot, resolve, servers)
				})
			}
		})
	}
}

// resolves asks by a resolv.conf of its own: in a root of its own, which holds that and the program, and
// nothing is mounted.
func (w *world) resolves(chroot, resolve string, servers []netip.Addr) {
	w.t.Helper()
	root := w.t.TempDir()
	text := "options timeout:2 attempts:1\n"
	for _, s := range servers {
		text += "nameserver " + s.String() + "\n"
	}
	must(w.t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	must(w.t, os.WriteFile(filepath.Join(root, "etc/resolv.conf"), []byte(text), 0o644))
	program, err := os.ReadFile(resolve)
	must(w.t, err)
	must(w.t, os.WriteFile(filepath.Join(root, "resolve"), program, 0o755))
	w.prints([]string{"203.0.113.0\n", "2001:db8:113::\n"}, chroot, root, "/resolve", name)
}
