package socklb

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// mptcp is IPPROTO_MPTCP.
const mptcp = 262

// mptcpClient returns an MPTCP socket. Its subflows belong to the kernel, which releases them without a hook.
func mptcpClient(t testing.TB, f family) *client {
	t.Helper()
	fd, err := unix.Socket(f.domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, mptcp)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT) {
		testutil.Missing(t, "needs a kernel with MPTCP")
	}
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, f, fd}
}

// TestMPTCP: however many MPTCP sockets are made and closed, others keep their records; what is left of them is
// forgotten once they are known to be gone.
func TestMPTCP(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxSockets = 64
	l := opened(t, cfg)
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { testMPTCP(t, l, f) })
	}
}

func testMPTCP(t *testing.T, l *LB, f family) {
	stream, dgram := echo(t, l4.TCP, netip.AddrPortFrom(f.pod, 0)), echo(t, l4.UDP, netip.AddrPortFrom(f.pod, 0))
	vip := netip.AddrPortFrom(f.vip, 80)
	reconcile(t, l, datapath.Frontend{Addr: l4.New(f.vip, 80, l4.TCP), Backends: one(stream)},
		datapath.Frontend{Addr: l4.New(f.vip, 80, l4.UDP), Backends: one(dgram)})
	for range 200 {
		c := mptcpClient(t, f)
		if err := c.connect(vip); err != nil {
			t.Fatal(err)
		}
		if peer, err := c.peer(); has(l.features, featureMPTCP) && (err != nil || peer != vip) {
			t.Fatalf("getpeername %v, %v; want %v", peer, err, vip)
		}
		c.close()
	}
	for range 100 {
		c := newClient(t, f, unix.SOCK_DGRAM)
		defer c.close()
		if err := c.send(vip); err != nil {
			t.Fatal(err)
		}
		if _, from, err := c.receive(); err != nil || from != vip {
			t.Fatalf("after MPTCP: answer from %v, %v; want %v", from, err, vip)
		}
	}
}

// TestForget: the records of a socket that is gone without a release are freed, and no other.
func TestForget(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	f := families[0]
	pod, vip := echo(t, l4.UDP, netip.AddrPortFrom(f.pod, 0)), netip.AddrPortFrom(f.vip, 80)
	reconcile(t, l, datapath.Frontend{Addr: l4.New(f.vip, 80, l4.UDP), Backends: one(pod)})
	gone, stays := newClient(t, f, unix.SOCK_DGRAM), newClient(t, f, unix.SOCK_DGRAM)
	defer gone.close()
	defer stays.close()
	for _, c := range []*client{gone, stays} {
		if err := c.connect(vip); err != nil {
			t.Fatal(err)
		}
	}
	owners, err := l.Owners()
	if err != nil || len(owners) != 2 {
		t.Fatalf("owners %v, %v; want two", owners, err)
	}
	cookie, err := unix.GetsockoptUint64(gone.fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := l.Forget([]uint64{cookie}); err != nil {
			t.Fatal(err)
		}
		if peer, err := gone.peer(); err != nil || peer != pod {
			t.Errorf("the forgotten socket sees %v, %v; want its backend", peer, err)
		}
		if peer, err := stays.peer(); err != nil || peer != vip {
			t.Errorf("another socket sees %v, %v; want the frontend", peer, err)
		}
	}
	if home, _ := countRecords(t, l); home != 1 {
		t.Errorf("%d homes are taken, want 1", home)
	}
}

// TestConnectedSendto: a datagram that a connected socket addresses to its own frontend takes the way of connect(),
// also when the choice by hash would be another, and as long as it is connected.
func TestConnectedSendto(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			front := datapath.Frontend{Addr: l4.New(f.vip, 80, l4.UDP)}
			for range 9 {
				front.Backends = append(front.Backends, one(echo(t, l4.UDP, netip.AddrPortFrom(f.pod, 0)))...)
			}
			reconcile(t, l, front)
			vip := netip.AddrPortFrom(f.vip, 80)
			for range 50 {
				c := newClient(t, f, unix.SOCK_DGRAM)
				if err := c.connect(vip); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(c.send(vip), c.write()); err != nil {
					t.Fatal(err)
				}
				first, from, err := c.receive()
				second, _, err2 := c.receive()
				if err := errors.Join(err, err2); err != nil || first != second || from != vip {
					t.Fatalf("sendto() went to %s, write() to %s (shown as %v), %v", first, second, from, err)
				}
				c.close()
			}
		})
	}
}
