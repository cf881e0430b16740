package testutil

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
)

// FreePort returns a loopback address with a port that nothing uses, by UDP or TCP, for a server that
// cannot be asked which port it got. The port lies below the ephemeral range, so no other program's
// outgoing connection takes it before the server does.
func FreePort(t testing.TB) netip.AddrPort {
	t.Helper()
	for range 20 {
		ip := netip.AddrFrom4([4]byte{127, byte(128 + rand.IntN(64)), byte(rand.IntN(256)), byte(1 + rand.IntN(254))})
		addr := netip.AddrPortFrom(ip, uint16(20_000+rand.IntN(10_000)))
		tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		if err != nil {
			continue
		}
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
		tcp.Close()
		if err == nil {
			udp.Close()
			return addr
		}
	}
	t.Fatal("no port is free for UDP and TCP")
	return netip.AddrPort{}
}
