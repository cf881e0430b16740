package clients

import (
	"fmt"
	"net/netip"
	"testing"

	"strait.io/strait/internal/l4"
)

// TestMuslMapped: with a server of each family musl asks all from one IPv6 socket, an IPv4 server by its v4-mapped
// address. The other server is silent, so the answer is the one that came back to that socket.
func TestMuslMapped(t *testing.T) {
	resolve := compile(t, "musl-gcc", "musl-tools", "resolve.c")
	chroot := need(t, "chroot", "coreutils")
	w := newWorld(t)
	four := families[0]
	w.serveDNS(netip.AddrPortFrom(four.pod, 53))
	w.balance(frontend(four.front, 53, l4.UDP, 53, four.pod), frontend(four.front, 53, l4.TCP, 53, four.pod))
	silent := netip.MustParseAddr("2001:db8::dead")
	for _, servers := range [][]netip.Addr{{four.pod, silent}, {four.front, silent}, {silent, four.front, four.pod}} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			w := w.in(t)
			w.resolves(chroot, resolve, servers)
		})
	}
}
