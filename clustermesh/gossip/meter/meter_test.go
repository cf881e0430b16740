package meter

import (
	"io"
	"net"
	"slices"
	"testing"
)

// TestMeter: what a connection carries is counted once on each side, and datagrams apart.
func TestMeter(t *testing.T) {
	var m Meter
	near, far := net.Pipe()
	conn := m.Conn(near)
	go func() {
		_, _ = io.CopyN(io.Discard, far, 5) // the test fails if it does not end
		_, _ = far.Write([]byte("abc"))
	}()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("more")); err == nil {
		t.Error("a closed connection takes bytes")
	}
	m.Sent(7)
	m.Received(11)
	want := []Count{{"udp", "sent", 7}, {"udp", "received", 11}, {"tcp", "sent", 5}, {"tcp", "received", 3}}
	if got := m.Counts(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNone: without a meter, nothing changes.
func TestNone(t *testing.T) {
	var m *Meter
	m.Sent(1)
	m.Received(1)
	near, _ := net.Pipe()
	if m.Conn(near) != near {
		t.Error("the connection is another one")
	}
}
