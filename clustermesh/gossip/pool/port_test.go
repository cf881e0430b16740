package pool

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
	"strait.io/strait/internal/testutil"
)

// trusting takes a connection for a record stream, and reads nothing.
type trusting struct{ TLS }

func (trusting) Accept(_ context.Context, raw net.Conn) (Secured, error) {
	return Secured{Conn: raw}, nil
}

// TestStreamsAtShutdown: streams that were handed out stay open and usable when the port is shut
// down at the same moment. The race detector watches.
func TestStreamsAtShutdown(t *testing.T) {
	a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 201, byte(rand.IntN(250)), byte(1 + rand.IntN(250))}), 27947)
	for range 100 {
		p, err := listen(Config{Bind: a, Keys: gossipkey.Ring{{}}, TLS: trusting{}, Refused: func(member.Refusal, netip.Addr) {}},
			func(netip.Addr) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			out, err := net.Dial("tcp", a.String())
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			if _, err := out.Write([]byte{tlsHandshake, 1}); err != nil {
				t.Fatal(err)
			}
		}
		in := []net.Conn{<-p.streams, <-p.streams, <-p.streams, <-p.streams}
		if err := p.Shutdown(); err != nil {
			t.Fatal(err)
		}
		for _, conn := range in {
			if _, err := io.ReadFull(conn, make([]byte, 2)); err != nil {
				t.Fatalf("a stream that was handed out: %v", err)
			}
			conn.Close()
		}
	}
}

// TestOnlyTLS: a connection without TLS is refused, also from an address that has a record stream.
func TestOnlyTLS(t *testing.T) {
	a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 201, byte(rand.IntN(250)), byte(1 + rand.IntN(250))}), 27947)
	refused := make(chan member.Refusal, 1)
	p, err := listen(Config{Bind: a, Keys: gossipkey.Ring{{}}, TLS: trusting{}, Refused: func(why member.Refusal, _ netip.Addr) { refused <- why }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown()
	for _, first := range []byte{tlsHandshake, labelHeader[0]} {
		out, err := net.Dial("tcp", a.String())
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if _, err := out.Write([]byte{first}); err != nil {
			t.Fatal(err)
		}
		if first == tlsHandshake {
			defer (<-p.streams).Close()
			continue
		}
		if why := <-refused; why != member.NotTLS {
			t.Errorf("refused as %s", why)
		}
		if n, err := out.Read(make([]byte, 1)); err == nil {
			t.Errorf("%d bytes are answered", n)
		}
	}
}

// TestGarbageTakesNoMemory: what strangers send is looked at where it is, however much it is; an empty
// datagram is nothing special. What has the key is passed on, and keeps its memory.
func TestGarbageTakesNoMemory(t *testing.T) {
	a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 202, byte(rand.IntN(250)), byte(1 + rand.IntN(250))}), 27947)
	refused := make(chan member.Refusal, 1)
	key := gossipkey.Key{1}
	p, err := listen(Config{Bind: a, Keys: gossipkey.Ring{key}, Refused: func(why member.Refusal, _ netip.Addr) { refused <- why }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown()
	out, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const many = 1000
	for n := range many {
		if _, err := out.Write(make([]byte, n%2*600)); err != nil {
			t.Fatal(err)
		}
		if why := <-refused; why != member.NotOurs {
			t.Fatalf("refused as %s", why)
		}
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / many; took > 4096 {
		t.Errorf("each datagram takes %d bytes", took)
	}

	var packets [][]byte
	for n := range byte(2) {
		if _, err := out.Write(sealed(t, key, []byte{n})); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-p.PacketCh():
			packets = append(packets, got.Buf)
			if got.From.String() != out.LocalAddr().String() {
				t.Errorf("it came from %s, want %s", got.From, out.LocalAddr())
			}
		case <-time.After(10 * time.Second):
			t.Fatal("what has the key is not passed on")
		}
	}
	if string(packets[0]) == string(packets[1]) {
		t.Error("the second datagram is where the first was")
	}
}

// TestRefusedTakesNoMemory: nothing is left of a connection that was refused, or that a peer left.
func TestRefusedTakesNoMemory(t *testing.T) {
	a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 203, byte(rand.IntN(250)), byte(1 + rand.IntN(250))}), 27947)
	p, err := listen(Config{Bind: a, Keys: gossipkey.Ring{{}}, Refused: func(member.Refusal, netip.Addr) {}}, func(netip.Addr) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown()
	const many = 20
	freed := make(chan bool, many)
	for range many {
		in, out := net.Pipe()
		conn := &struct{ net.Conn }{in}
		runtime.AddCleanup(conn, func(c chan bool) { c <- true }, freed)
		p.enter(conn)
		out.Close()
	}
	testutil.Eventually(t, 10*time.Second, func() error {
		runtime.GC()
		if n := len(freed); n < many {
			return fmt.Errorf("the memory of %d of %d connections is still in use", many-n, many)
		}
		return nil
	})
}
