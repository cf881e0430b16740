package clients

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// trick is a row of the table: what testdata/tcp.c or udp.c does with a socket, and what it prints.
// The server says which of its addresses was reached.
type trick struct {
	name    string
	program string
	trick   string
	args    []string
	want    []string
	wantNot []string
}

// Frontends of the tricks, as arguments. first and second have the same backend, other another one
// of the same machine, no program listens at closed's, and mute's accepts a connection only with
// its first data.
var (
	first  = []string{"10.96.0.1", "1001"}
	second = []string{"10.96.0.1", "1002"}
	other  = []string{"10.96.0.1", "1003"}
	closed = []string{"10.96.0.1", "1004"}
	sip    = []string{"10.96.0.1", "5060"}
	mapped = []string{"::ffff:10.96.0.1", "1001"}
	six    = []string{"fd00:96::1", "1001"}
	mute   = []string{"10.96.0.1", "1005"}
)

const (
	peer   = "peer 10.96.0.1 port 1001\n"
	said   = "answer hello at 192.0.2.2:9001\n"
	echoed = "from 10.96.0.1 port 1001: hello at 192.0.2.2:9001\n"
)

var tricks = []trick{
	{name: "TCP, IPv4", program: "tcp", trick: "plain", args: first, want: []string{peer + said}},
	{name: "TCP, IPv6", program: "tcp", trick: "plain", args: six,
		want: []string{"peer fd00:96::1 port 1001\nanswer hello at [2001:db8::2]:9001\n"}},
	{name: "TCP, v4-mapped", program: "tcp", trick: "plain", args: mapped, want: []string{"peer ::ffff:10.96.0.1 port 1001\n" + said}},
	{name: "TCP fast open by connect", program: "tcp", trick: "fastopen", args: first, want: []string{said + peer + "data in the SYN\n"}},
	{name: "TCP fast open by sendto", program: "tcp", trick: "msg-fastopen", args: first, want: []string{said + peer + "data in the SYN\n"}},
	{name: "TCP_DEFER_ACCEPT", program: "tcp", trick: "plain", args: mute,
		want: []string{"peer 10.96.0.1 port 1005\nanswer hello at 192.0.2.2:9005\n"}},
	{name: "MPTCP", program: "tcp", trick: "mptcp", args: first, want: []string{said}},
	{name: "io_uring", program: "tcp", trick: "io_uring", args: first, want: []string{peer + said}},
	{name: "nonblocking connect and poll", program: "tcp", trick: "nonblocking", args: first, want: []string{peer + said}},
	{name: "SO_BINDTODEVICE, TCP", program: "tcp", trick: "device", args: first, want: []string{peer + said}},
	{name: "bound source port", program: "tcp", trick: "bound", args: first, want: []string{peer + said}},
	{name: "bound source port, two frontends of one backend", program: "tcp", trick: "collide", args: slices.Concat(first, second),
		want: []string{said + "second connect: EADDRNOTAVAIL\n" + said}},
	{name: "connect, AF_UNSPEC, connect, TCP", program: "tcp", trick: "again", args: slices.Concat(first, other),
		want: []string{peer + said + "peer 10.96.0.1 port 1003\nanswer hello at 192.0.2.3:9001\n"}},
	{name: "SCM_RIGHTS", program: "tcp", trick: "pass", args: first, want: []string{peer + said}},
	{name: "SO_ORIGINAL_DST", program: "tcp", trick: "original", args: first, want: []string{said + "no original destination: "}},

	{name: "UDP, IPv4", program: "udp", trick: "plain", args: first, want: []string{echoed + peer + echoed}},
	{name: "UDP, IPv6", program: "udp", trick: "plain", args: six, want: []string{
		"from fd00:96::1 port 1001: hello at [2001:db8::2]:9001\npeer fd00:96::1 port 1001\nfrom fd00:96::1 port 1001: hello"}},
	{name: "UDP, v4-mapped", program: "udp", trick: "plain", args: mapped, want: []string{
		"from ::ffff:10.96.0.1 port 1001: hello at 192.0.2.2:9001\npeer ::ffff:10.96.0.1 port 1001\nfrom ::ffff:10.96.0.1 port 1001: hello"}},
	{name: "SO_BINDTODEVICE, UDP", program: "udp", trick: "device", args: first, want: []string{echoed + peer + echoed}},
	{name: "connect, AF_UNSPEC, connect, UDP", program: "udp", trick: "again", args: slices.Concat(first, other),
		want: []string{peer + echoed + "peer 10.96.0.1 port 1003\nfrom 10.96.0.1 port 1003: hello at 192.0.2.3:9001\n" + peer + echoed}},
	{name: "UDP_SEGMENT and UDP_GRO", program: "udp", trick: "segment", args: first,
		want: []string{"from 10.96.0.1 port 1001: " + strings.Repeat("x", 40) + " at 192.0.2.2:9001", "\n400 came back\n"}, wantNot: []string{"from 192.0.2.2"}},
	{name: "IP_PKTINFO", program: "udp", trick: "pktinfo", args: first, want: []string{echoed + "arrived at 192.0.2.1\n"}},
	{name: "IP_RECVERR", program: "udp", trick: "errqueue", args: closed, want: []string{"error from 192.0.2.2 port 9004\n"}},
	{name: "symmetric UDP, as in SIP", program: "udp", trick: "symmetric", args: sip, want: []string{
		"from 10.96.0.1 port 5060: 100 Trying 192.0.2.1:5060\nfrom 10.96.0.1 port 5060: 200 OK\nfrom 10.96.0.1 port 5060: NOTIFY\n"}},
}

func TestTricks(t *testing.T) {
	programs := map[string]string{}
	for _, name := range []string{"tcp", "udp"} {
		programs[name] = compile(t, "gcc", "gcc", name+".c")
	}
	w := newWorld(t)
	w.serveTricks()
	for _, k := range tricks {
		t.Run(k.name, func(t *testing.T) {
			w := w.in(t)
			printed, status := w.client(programs[k.program], append([]string{k.trick}, k.args...)...)
			if what, lacks := strings.CutPrefix(printed, "the kernel lacks "); lacks {
				testutil.Missing(t, "needs "+what)
			}
			if status != 0 {
				t.Errorf("exit status %d", status)
			}
			wants(t, printed, k.want...)
			for _, text := range k.wantNot {
				if strings.Contains(printed, text) {
					t.Errorf("%q in:\n%s", text, printed)
				}
			}
		})
	}
}

// serveTricks starts the servers and makes their frontends.
func (w *world) serveTricks() {
	w.t.Helper()
	for _, ns := range []*testutil.Namespace{w.servers, w.clients} {
		must(w.t, ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_fastopen", []byte("3"), 0o644) }))
	}
	for _, ip := range []netip.Addr{pod4, other4, pod6} {
		w.echo(netip.AddrPortFrom(ip, 9001))
		w.echoLines(netip.AddrPortFrom(ip, 9001), unix.TCP_FASTOPEN, 16)
	}
	w.echoLines(netip.AddrPortFrom(pod4, 9005), unix.TCP_DEFER_ACCEPT, 5)
	w.serveCalls(netip.AddrPortFrom(pod4, 5060))
	w.balance(
		frontend(front4, 1001, l4.TCP, 9001, pod4), frontend(front4, 1001, l4.UDP, 9001, pod4),
		frontend(front6, 1001, l4.TCP, 9001, pod6), frontend(front6, 1001, l4.UDP, 9001, pod6),
		frontend(front4, 1002, l4.TCP, 9001, pod4),
		frontend(front4, 1003, l4.TCP, 9001, other4), frontend(front4, 1003, l4.UDP, 9001, other4),
		frontend(front4, 1004, l4.UDP, 9004, pod4),
		frontend(front4, 1005, l4.TCP, 9005, pod4),
		frontend(front4, 5060, l4.UDP, 5060, pod4),
	)
}

// echoLines answers each line of a connection with itself and the address that it reached. The
// listener has an option of TCP.
func (w *world) echoLines(at netip.AddrPort, option, value int) {
	w.t.Helper()
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_TCP, option, value) })
		if failed != nil {
			return failed
		}
		return err
	}}
	var l net.Listener
	must(w.t, w.servers.Do(func() (err error) {
		l, err = c.Listen(context.Background(), "tcp", at.String())
		return err
	}))
	w.serveLines(l, func(line string) string { return fmt.Sprintf("%s at %v\n", strings.TrimSpace(line), at) })
}

// serveCalls answers a request like a SIP server: twice, and then it has a request of its own.
func (w *world) serveCalls(at netip.AddrPort) {
	w.t.Helper()
	var p net.PacketConn
	must(w.t, w.servers.Do(func() (err error) {
		p, err = net.ListenPacket("udp", at.String())
		return err
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 64); ; {
			_, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			for _, text := range []string{fmt.Sprintf("100 Trying %v", from), "200 OK", "NOTIFY"} {
				_, _ = p.WriteTo([]byte(text), from) // a lost answer shows in the client
			}
		}
	}()
	w.t.Cleanup(func() {
		p.Close()
		<-done
	})
}
