package wireguard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/key"
)

// datagram sends one from a to b, and so gives a a session with b.
func datagram(t *testing.T, a, b *node) {
	t.Helper()
	var to net.Conn
	var l *net.UDPConn
	must(t, b.Do(func() (err error) {
		l, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(b.pod), 9)))
		return err
	}))
	defer l.Close()
	must(t, a.Do(func() (err error) { to, err = net.Dial("udp", l.LocalAddr().String()); return err }))
	defer to.Close()
	_, err := to.Write([]byte("hello"))
	must(t, err)
	must(t, l.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = l.Read(make([]byte, 10))
	must(t, err)
}

// late is a way to a tunnel on which the packets of sessions take a while; handshakes do not.
func late(t *testing.T, tunnel netip.AddrPort, by time.Duration) netip.AddrPort {
	t.Helper()
	addr := netip.MustParseAddr("192.168.7.250")
	must(t, addAddr("br0", addr.String()+"/24"))
	front, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
	must(t, err)
	back, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(tunnel))
	must(t, err)
	t.Cleanup(func() { front.Close(); back.Close() })
	const transport = 4 // the first byte of a packet of a session
	go func() {
		answering := false
		for {
			packet := make([]byte, 2048)
			n, from, err := front.ReadFromUDPAddrPort(packet)
			if err != nil {
				return
			}
			if !answering {
				answering = true
				go func() {
					answer := make([]byte, 2048)
					for {
						n, err := back.Read(answer)
						if errors.Is(err, net.ErrClosed) {
							return
						}
						front.WriteToUDPAddrPort(answer[:n], from)
					}
				}()
			}
			send := func() { back.Write(packet[:n]) }
			if packet[0] == transport {
				time.AfterFunc(by, send)
			} else {
				send()
			}
		}
	}()
	return netip.AddrPortFrom(addr, front.LocalAddr().(*net.UDPAddr).AddrPort().Port())
}

// TestBootedMachine: a machine that lost its sessions can be reached as soon as it has had handshakes with its peers. Its
// peer does not know of the loss, and would go on in the old session for 15 s; and after the handshake until
// the first packet of the new one, which takes a while here.
func TestBootedMachine(t *testing.T) { eachMode(t, testBootedMachine) }

func testBootedMachine(t *testing.T, mode wireguard.Kind) {
	a, b := pair(t, mode)
	datagram(t, a, b) // not TCP: its retransmissions would start handshakes too
	must(t, b.dev.Close())
	must(t, b.Do(func() error { return wireguard.CleanUp(b.cfg) }))
	must(t, b.Do(func() error {
		l, err := netlink.LinkByName(b.cfg.Device)
		if err != nil {
			return nil // gone with its process
		}
		return netlink.LinkDel(l)
	}))
	far := *a
	far.underlay = late(t, a.underlay, 300*time.Millisecond)
	b.open(t, &far)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	asked := 0
	must(t, b.dev.Handshake(ctx, func(ctx context.Context, peer key.Public) {
		if asked++; peer != a.private.Public() {
			t.Errorf("asked %s", peer)
		}
		err := b.Do(func() error {
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.pod, "7"))
			if err == nil {
				c.Close()
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}))
	peers, err := b.dev.Peers()
	must(t, err)
	if peers[0].Handshake.IsZero() || asked != 1 {
		t.Fatalf("no handshake within 3 s, or not asked once: %+v, %d", peers[0], asked)
	}
	c, err := a.dial(b.pod, 900*time.Millisecond)
	if err != nil {
		t.Fatalf("a call of the peer that knew the machine before: %v", err)
	}
	must(t, c.echo("welcome back"))
	must(t, b.dev.Handshake(ctx, func(context.Context, key.Public) { t.Error("asked a peer with which there is a session") }))
}

// TestBothHandshake: two machines that boot at the same time have their handshake soon. It shows that Handshake makes
// one; that initiations cross is rare, and not forced here.
func TestBothHandshake(t *testing.T) { eachMode(t, testBothHandshake) }

func testBothHandshake(t *testing.T, mode wireguard.Kind) {
	nodes := newNodes(t, 2, mode)
	a, b := nodes[0], nodes[1]
	a.open(t, b)
	b.open(t, a)
	soon := 4 * time.Second // WireGuard's own next try comes after 5 s
	if testing.Short() {
		soon = 20 * time.Second // an emulated processor can need longer
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	done := make(chan error, 2)
	for _, n := range nodes {
		go func() {
			done <- n.Do(func() error { return n.dev.Handshake(ctx, func(context.Context, key.Public) {}) })
		}()
	}
	must(t, errors.Join(<-done, <-done))
	for _, n := range nodes {
		peers, err := n.dev.Peers()
		must(t, err)
		if peers[0].Handshake.IsZero() {
			t.Error("no handshake")
		}
	}
}
