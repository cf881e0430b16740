package pool

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"strait.io/strait/internal/gossipkey"
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
		p, err := listen(Config{Bind: a, Keys: gossipkey.Ring{{}}, TLS: trusting{}, Refused: func(Refusal, netip.Addr) {}},
			func(netip.Addr) bool { return false }, log.New(io.Discard, "", 0))
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
