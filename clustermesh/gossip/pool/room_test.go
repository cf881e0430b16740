package pool

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
)

// TestMembersKeepRoom: a member's connection that takes its time is not closed for strangers', of which
// many are.
func TestMembersKeepRoom(t *testing.T) {
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 202, byte(n >> 8), byte(n)}) }
	bind := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 203, byte(rand.IntN(250)), byte(1 + rand.IntN(250))}), 27947)
	known := at(1)
	crowded := make(chan netip.Addr, 1024)
	p, err := listen(Config{Bind: bind, Keys: gossipkey.Ring{{}}, TLS: trusting{}, Refused: func(why member.Refusal, from netip.Addr) {
		if why == member.Crowded {
			crowded <- from
		}
	}}, func(a netip.Addr) bool { return a == known })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Shutdown(); err != nil {
			t.Error(err)
		}
	}()
	dial := func(from netip.Addr) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}, Timeout: 10 * time.Second}
		conn, err := d.Dial("tcp", bind.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	slow := dial(known)
	for n := range 2 * maxWaiting {
		dial(at(100 + n))
	}
	for range maxWaiting { // as many as there is no room for
		select {
		case from := <-crowded:
			if from == known {
				t.Fatal("the member had to go")
			}
		case <-time.After(4 * time.Second): // before they would be given up anyway
			t.Fatal("no stranger had to go")
		}
	}
	_ = slow.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := slow.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the member's connection: %v", err)
	}
}
