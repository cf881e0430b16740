package clients

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strait.io/strait/internal/l4"
)

// echo answers each datagram with itself and the address that it reached.
func (w *world) echo(at netip.AddrPort) {
	w.t.Helper()
	var p net.PacketConn
	must(w.t, w.servers.Do(func() (err error) {
		p, err = net.ListenPacket("udp", at.String())
		return err
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64)
		for {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(fmt.Appendf(nil, "%s at %v", b[:n], at), from) // a lost answer shows in the client
		}
	}()
	w.t.Cleanup(func() {
		p.Close()
		<-done
	})
}

// TestManyMessages: each datagram of one sendmmsg() goes to its own address' backend, and recvmmsg() shows for
// each the address that it was sent to.
func TestManyMessages(t *testing.T) {
	mmsg := compile(t, "gcc", "gcc", "mmsg.c")
	w := newWorld(t)
	mapped := families[0]
	mapped.name = "v4-mapped"
	for _, f := range append(slices.Clone(families), mapped) {
		t.Run(f.name, func(t *testing.T) {
			w := w.in(t)
			for _, port := range []uint16{9001, 9002} {
				w.echo(netip.AddrPortFrom(f.pod, port))
			}
			w.balance(frontend(f.front, 1001, l4.UDP, 9001, f.pod), frontend(f.front, 1002, l4.UDP, 9002, f.pod))
			show := func(a netip.Addr) string {
				if f.name == "v4-mapped" {
					return "::ffff:" + a.String()
				}
				return a.String()
			}
			// Two frontends, and between them a pod that is the backend of neither, many times over.
			w.echo(netip.AddrPortFrom(f.pod, 9003))
			var args, want []string
			for i := range 30 {
				to := []struct {
					ip         netip.Addr
					port, pods int
				}{{f.front, 1001, 9001}, {f.pod, 9003, 9003}, {f.front, 1002, 9002}}[i%3]
				args = append(args, show(to.ip), strconv.Itoa(to.port))
				want = append(want, fmt.Sprintf("from %s port %d: %d at %v\n", show(to.ip), to.port, i,
					netip.AddrPortFrom(f.pod, uint16(to.pods))))
			}
			printed := w.prints(append(want, "sent 30\n"), mmsg, args...)
			if n := strings.Count(printed, "from "); n != 30 {
				t.Errorf("%d replies, want 30:\n%s", n, printed)
			}
			t.Run("connected", func(t *testing.T) {
				w := w.in(t)
				w.prints([]string{
					"sent 2\n",
					fmt.Sprintf("from %s port 1001: 0 at %v\n", show(f.front), netip.AddrPortFrom(f.pod, 9001)),
					fmt.Sprintf("from %s port 1001: 1 at %v\n", show(f.front), netip.AddrPortFrom(f.pod, 9001)),
				}, mmsg, "-c", show(f.front), "1001", show(f.front), "1001")
			})
		})
	}
}
