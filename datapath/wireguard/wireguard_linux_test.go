package wireguard_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/wireguard"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// pair are two nodes with open tunnels to each other, both serving echo.
func pair(t *testing.T, mode wireguard.Kind) (a, b *node) {
	t.Helper()
	nodes := newNodes(t, 2, mode)
	a, b = nodes[0], nodes[1]
	a.open(t, b)
	b.open(t, a)
	a.echo(t)
	b.echo(t)
	return a, b
}

func TestTunnel(t *testing.T) { eachMode(t, testTunnel) }

func testTunnel(t *testing.T, mode wireguard.Kind) {
	text := strings.Repeat("full segments ", testutil.Rounds(100_000, 10_000))
	nodes := newNodes(t, 3, mode)
	for i, n := range nodes {
		n.open(t, nodes[(i+1)%3], nodes[(i+2)%3])
		n.echo(t)
		if n.dev.Kind() != mode || !n.dev.Alive() {
			t.Errorf("kind %q, alive %v", n.dev.Kind(), n.dev.Alive())
		}
	}
	for i, n := range nodes {
		for _, to := range []*node{nodes[(i+1)%3], nodes[(i+2)%3]} {
			for from, addr := range map[string]string{n.pod: to.pod, n.pod6: to.pod6} {
				c := n.connect(t, addr)
				if c.from != from {
					t.Errorf("%s sees a call from %s, want %s", addr, c.from, from)
				}
				must(t, c.echo(text))
			}
		}
	}
	peers, err := nodes[0].dev.Peers()
	must(t, err)
	if len(peers) != 2 {
		t.Fatalf("peers: %v", peers)
	}
	for _, p := range peers {
		if time.Since(p.Handshake) > time.Minute || p.Sent < int64(len(text)) || p.Received < int64(len(text)) || len(p.AllowedIPs) != 2 {
			t.Errorf("status %+v", p)
		}
	}
}

// TestFullSizePackets: a datagram as large as the MTU allows passes unfragmented, a larger one is
// refused by the sender's kernel.
func TestFullSizePackets(t *testing.T) { eachMode(t, testFullSizePackets) }

func testFullSizePackets(t *testing.T, mode wireguard.Kind) {
	a, b := pair(t, mode)
	const headers = 28 // IPv4 and UDP
	must(t, b.Do(func() error {
		l, err := net.ListenPacket("udp4", b.pod+":9")
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			buf := make([]byte, 2000)
			for {
				n, from, err := l.ReadFrom(buf)
				if err != nil {
					return
				}
				_, _ = l.WriteTo(buf[:n], from)
			}
		}()
		return nil
	}))
	var c net.Conn
	must(t, a.Do(func() (err error) { c, err = net.Dial("udp4", b.pod+":9"); return err }))
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	}))
	must(t, err)
	full := bytes.Repeat([]byte("x"), a.cfg.MTU-headers)
	_, err = c.Write(full)
	must(t, err)
	must(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
	got := make([]byte, 2000)
	n, err := c.Read(got)
	if err != nil || n != len(full) {
		t.Errorf("a full-size datagram of %d bytes came back as %d: %v", len(full), n, err)
	}
	if _, err := c.Write(append(full, 'x')); !errors.Is(err, unix.EMSGSIZE) {
		t.Errorf("one byte more: %v, want EMSGSIZE", err)
	}
}

// TestReopenAdopts: a daemon that ends and comes back finds the same process, and no connection breaks.
func TestReopenAdopts(t *testing.T) { eachMode(t, testReopenAdopts) }

func testReopenAdopts(t *testing.T, mode wireguard.Kind) {
	a, b := pair(t, mode)
	c := a.connect(t, b.pod)
	must(t, c.echo("before"))
	var pid int
	if mode == wireguard.Userspace {
		pid = a.pid(t)
	}
	before, err := a.dev.Peers()
	must(t, err)
	must(t, a.dev.Close())
	must(t, c.echo("without a daemon"))
	a.open(t, b)
	must(t, c.echo("after"))
	if mode == wireguard.Userspace {
		if now := a.pid(t); now != pid {
			t.Errorf("process %d, was %d", now, pid)
		}
	}
	after, err := a.dev.Peers()
	must(t, err)
	if len(after) != 1 || !after[0].Handshake.Equal(before[0].Handshake) {
		t.Errorf("the session was disturbed: handshake at %v, was %v", after[0].Handshake, before[0].Handshake)
	}
}

// TestRoaming: an underlay that the peer changed by roaming stays; one that is newly wanted is set.
func TestRoaming(t *testing.T) { eachMode(t, testRoaming) }

func testRoaming(t *testing.T, mode wireguard.Kind) {
	a, b := pair(t, mode)
	c := a.connect(t, b.pod)
	underlay := func() netip.AddrPort {
		peers, err := a.dev.Peers()
		must(t, err)
		return peers[0].Underlay
	}
	if got := underlay(); got != b.underlay {
		t.Fatalf("underlay %v, want %v", got, b.underlay)
	}
	// b moves to another address, and announces that by nothing but a packet.
	roamed := netip.MustParseAddrPort("192.168.7.77:51820")
	must(t, b.Do(func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		old, err := netlink.ParseAddr(b.underlay.Addr().String() + "/24")
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrDel(l, old), addAddr("eth0", roamed.Addr().String()+"/24"))
	}))
	back := b.connect(t, a.pod)
	must(t, back.echo("I moved"))
	must(t, c.echo("found"))
	if got := underlay(); got != roamed {
		t.Fatalf("underlay after roaming %v, want %v", got, roamed)
	}
	for range 2 {
		a.reconcile(t, b)
		if got := underlay(); got != roamed {
			t.Fatalf("a roamed underlay was rewritten to %v", got)
		}
	}
	// A new daemon does not know what was set. The session lives, so it leaves the address alone.
	must(t, a.dev.Close())
	a.open(t, b)
	if got := underlay(); got != roamed {
		t.Fatalf("a roamed underlay was rewritten to %v by a new daemon", got)
	}
	must(t, c.echo("still there"))

	b.underlay = roamed
	a.reconcile(t, b) // now it is known
	// From here on b is silent: another packet of its would rightly bring the roamed address back.
	must(t, b.Do(func() error {
		l, err := netlink.LinkByName("eth0")
		return errors.Join(err, netlink.LinkSetDown(l))
	}))
	b.underlay = netip.MustParseAddrPort("192.168.7.78:51820")
	a.reconcile(t, b)
	if got := underlay(); got != b.underlay {
		t.Errorf("underlay %v, want the new one %v", got, b.underlay)
	}
}

// TestAllowedIPMoves: a prefix moves between peers while a third one keeps its session, and unwanted ones go.
func TestAllowedIPMoves(t *testing.T) { eachMode(t, testAllowedIPMoves) }

func testAllowedIPMoves(t *testing.T, mode wireguard.Kind) {
	nodes := newNodes(t, 3, mode)
	a, b, c := nodes[0], nodes[1], nodes[2]
	a.open(t, b, c)
	b.open(t, a)
	c.open(t, a)
	b.echo(t)
	kept := a.connect(t, b.pod)
	moving := netip.MustParsePrefix("10.50.0.0/16")
	holders := func() (names []string) {
		peers, err := a.dev.Peers()
		must(t, err)
		for _, p := range peers {
			for _, ip := range p.AllowedIPs {
				if ip == moving {
					names = append(names, p.Key.String())
				}
			}
		}
		return names
	}
	give := func(prune bool, owner *node) {
		want, _ := wanted(a, b, c)
		for i := range want {
			if owner != nil && want[i].Key == owner.private.Public() {
				want[i].AllowedIPs = append(want[i].AllowedIPs, moving)
			}
		}
		must(t, a.Do(func() error { return problem.Strict(a.dev.Reconcile(want, prune)) }))
	}
	give(true, b)
	give(true, c)
	if got := holders(); len(got) != 1 || got[0] != c.private.Public().String() {
		t.Errorf("holders %v, want c only", got)
	}
	give(false, nil)
	if got := holders(); len(got) != 1 {
		t.Errorf("without prune the prefix is held by %v, want c still", got)
	}
	give(true, nil)
	if got := holders(); len(got) != 0 {
		t.Errorf("holders %v, want none", got)
	}
	peers, err := a.dev.Peers()
	if err != nil || len(peers) != 2 || len(peers[0].AllowedIPs) != 2 || len(peers[1].AllowedIPs) != 2 {
		t.Errorf("peers %v, %v", peers, err)
	}
	must(t, kept.echo("undisturbed"))

	must(t, a.Do(func() error { return problem.Strict(a.dev.Reconcile([]datapath.Peer{b.peer()}, false)) }))
	if peers, _ := a.dev.Peers(); len(peers) != 2 {
		t.Errorf("%d peers without prune, want 2", len(peers))
	}
	a.reconcile(t, b)
	if peers, _ := a.dev.Peers(); len(peers) != 1 || peers[0].Key != b.private.Public() {
		t.Errorf("peers %v, want b only", peers)
	}
}
