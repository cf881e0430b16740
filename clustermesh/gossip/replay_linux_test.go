package gossip

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/testutil"
)

// capture collects the datagrams that go to a port of this machine, until the test ends.
func capture(t *testing.T, to netip.AddrPort) (taken func() [][]byte) {
	t.Helper()
	testutil.NeedRoot(t)
	const ip = 0x0008 // ETH_P_IP in network order
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, ip)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 50_000}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var out [][]byte
	ended, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer syscall.Close(fd)
		buf := make([]byte, 64<<10)
		for {
			select {
			case <-stop:
				return
			default:
			}
			n, from, err := syscall.Recvfrom(fd, buf, 0)
			// Loopback shows each packet as it leaves and as it arrives.
			if ll, ok := from.(*syscall.SockaddrLinklayer); err != nil || !ok || ll.Pkttype == syscall.PACKET_OUTGOING || n < 28 || buf[9] != syscall.IPPROTO_UDP {
				continue
			}
			head := int(buf[0]&15) * 4
			if dst, _ := netip.AddrFromSlice(buf[16:20]); dst != to.Addr() || binary.BigEndian.Uint16(buf[head+2:]) != to.Port() {
				continue
			}
			mu.Lock()
			out = append(out, slices.Clone(buf[head+8:n]))
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
	return func() [][]byte { mu.Lock(); defer mu.Unlock(); return slices.Clone(out) }
}

// TestReplay: datagrams that a daemon sent while it lived do not make it alive again, neither when it is
// gone nor after the daemon that they go to was restarted. A daemon that is there still is alive.
func TestReplay(t *testing.T) {
	t.Parallel()
	c1, c2 := config(origin("a", "n1")), config(origin("a", "n2"))
	c1.StateDir = t.TempDir()
	c2.Seeds = []string{c1.Bind.String()}
	taken := capture(t, c1.Bind)
	d1, d2 := start(t, c1), start(t, c2)
	d1.say(1)
	d2.say(2)
	eventually(t, "they know each other", func() bool {
		return d1.said(c2.Self) == 2 && d2.said(c1.Self) == 1 && d1.contact(c2.Self) == clustermesh.Alive && len(taken()) > 20
	})
	d1.stop()
	d2.stop()
	d1 = start(t, c1) // it has forgotten whose life it was that ended
	d1.say(1)
	listening(t, c1.Bind)
	old := taken()
	var ghost time.Time // when memberlist fell for it
	for end := time.Now().Add(patience); ghost.IsZero() || time.Since(ghost) < 3*time.Second; {
		if time.Now().After(end) {
			t.Fatalf("memberlist does not fall for any of %d datagrams, so this test shows nothing", len(old))
		}
		for _, b := range old {
			throw(t, b, c1.Bind)
		}
		if ghost.IsZero() && d1.isMember(c2.Self) {
			ghost = time.Now()
		}
		if c := d1.contact(c2.Self); c == clustermesh.Alive {
			t.Fatalf("the replay of %d datagrams made a daemon alive that is gone", len(old))
		}
		time.Sleep(20 * time.Millisecond)
	}
	d2 = start(t, c2)
	d2.say(3)
	eventually(t, "the daemon itself is heard", func() bool {
		return d1.said(c2.Self) == 3 && d1.contact(c2.Self) == clustermesh.Alive && d2.contact(c1.Self) == clustermesh.Alive
	})
}

// throw sends a datagram from a port of a stranger's.
func throw(t *testing.T, b []byte, to netip.AddrPort) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	_ = syscall.Sendto(fd, b, 0, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
}

// isMember reports whether memberlist counts a node among its members.
func (d *daemon) isMember(o clustermesh.Origin) bool {
	return slices.Contains(d.members(), o)
}
