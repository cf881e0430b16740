package netfilter_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// TestListeners: another cluster reaches the ports of pods that use the node's network, at the node's
// address inside the tunnel, and no other port.
func TestListeners(t *testing.T) {
	p, _ := filteredPath(t)
	must(t, p.node.Do(func() error {
		for _, port := range []string{"9100", "9101"} {
			l, err := net.Listen("tcp", net.JoinHostPort(nodeUnder4, port)) // not on all addresses
			if err != nil {
				return err
			}
			t.Cleanup(func() { l.Close() })
		}
		u, err := net.ListenPacket("udp", net.JoinHostPort(nodeUnder4, "9100"))
		if err != nil {
			return err
		}
		t.Cleanup(func() { u.Close() })
		go echo(u)
		return nil
	}))
	want := sources()
	must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(want, true)) }))
	if err := call(p.far, nodeInside, "9100", 300*time.Millisecond); err == nil {
		t.Error("the port is open before it is listed")
	}
	at := netip.MustParseAddr(nodeUnder4)
	want.Listeners = []datapath.Listener{{Addr: at, Port: 9100, Proto: l4.TCP}, {Addr: at, Port: 9100, Proto: l4.UDP}}
	must(t, p.node.Do(func() error { return problem.Strict(newTable(t).Reconcile(want, true)) }))
	must(t, call(p.far, nodeInside, "9100", 10*time.Second))
	must(t, p.far.Do(func() error { return ask(net.JoinHostPort(nodeInside, "9100")) }))
	for _, port := range []string{"9101", "80"} {
		for _, a := range []string{nodeInside, nodeUnder4} {
			if err := call(p.far, a, port, 300*time.Millisecond); err == nil {
				t.Errorf("%s port %s answers through the tunnel", a, port)
			}
		}
	}
}

// echo sends each packet back.
func echo(u net.PacketConn) {
	var b [64]byte
	for {
		n, from, err := u.ReadFrom(b[:])
		if err != nil {
			return
		}
		_, _ = u.WriteTo(b[:n], from) // who asked sees that nothing comes
	}
}

// ask sends a packet, and waits until it comes back to a connected socket: from the address that it
// was sent to.
func ask(to string) error {
	c, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}
