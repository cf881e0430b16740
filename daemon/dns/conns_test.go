package dns

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// TestSilentClients: clients that hold connections and send nothing keep no other client from an answer over
// TCP, and only so many are open.
func TestSilentClients(t *testing.T) {
	addr := testutil.FreePort(t)
	s := run(t, Config{Listen: []netip.AddrPort{addr}}, testTable)
	eventually(t, "two listeners", func() bool { return s.listeners() == 2 })
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for i := range maxConns + 2*maxConnsPerSource {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, byte(i/maxConnsPerSource), 1)}}
		c, err := d.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	if got := show(exchangeWith(t, "tcp", addr, ask("serve.default.svc.clusterset.local.", "A"))); got != "10.255.0.1" {
		t.Errorf("got %q", got)
	}
	// The first ones had to go.
	if err := open[0].SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := open[0].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest silent connection got something")
	} else if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Error("the oldest silent connection is still open")
	}
}

// TestConnsOfOneSource: beyond its share, a source loses its own oldest connection.
func TestConnsOfOneSource(t *testing.T) {
	l := &limited{}
	conn := func(source string) *limitedConn { return &limitedConn{source: netip.MustParsePrefix(source), of: l} }
	other, first := conn("192.0.2.1/32"), conn("192.0.2.2/32")
	if l.add(other) != nil || l.add(first) != nil {
		t.Fatal("one has to go though there is room")
	}
	for range maxConnsPerSource - 1 {
		if l.add(conn("192.0.2.2/32")) != nil {
			t.Fatal("one has to go though there is room")
		}
	}
	if l.add(conn("192.0.2.2/32")) != first {
		t.Error("it is not the oldest of the source that has to go")
	}
}
