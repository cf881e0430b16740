package stream

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// both has two daemons follow each other.
func both(a, b *end) {
	a.Follow(map[clustermesh.Origin]bool{b.self: true})
	b.Follow(map[clustermesh.Origin]bool{a.self: true})
}

// connections counts those that others opened to it.
func (e *end) connections() int {
	e.Streams.mu.Lock()
	defer e.Streams.mu.Unlock()
	n := 0
	for conn := range e.accepted {
		if conn.LocalAddr().String() == e.addr.String() {
			n++
		}
	}
	return n
}

// talk demands that messages reach both.
func talk(t *testing.T, a, b *end, what string) {
	t.Helper()
	eventually(t, what, func() bool {
		a.Send(b.self, []byte(what))
		b.Send(a.self, []byte(what))
		return a.got(string(b.self.Node)+" "+what) && b.got(string(a.self.Node)+" "+what)
	})
}

// TestBothWays: two neighbours have one connection, which the lower of them dials, and messages
// pass both ways. If it breaks, there is another.
func TestBothWays(t *testing.T) {
	all := ends(t, "a", "b", "stranger")
	a, b := all["a"], all["b"]
	both(a, b)
	talk(t, a, b, "hello")
	time.Sleep(2 * yield)
	if a.connections() != 0 || b.connections() != 1 {
		t.Errorf("a has %d connections of others, b %d, want 0 and 1", a.connections(), b.connections())
	}
	b.Streams.mu.Lock()
	for conn := range b.accepted {
		hangUp(conn)
	}
	b.Streams.mu.Unlock()
	talk(t, a, b, "again")
	eventually(t, "both know that something may be lost", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		b.mu.Lock()
		defer b.mu.Unlock()
		return a.renewed == 1 && b.renewed == 1
	})
}

// TestOneSideDials: where only one of two can dial, both hear each other.
func TestOneSideDials(t *testing.T) {
	for _, deaf := range []string{"a", "b"} {
		t.Run(deaf+" cannot be dialled", func(t *testing.T) {
			t.Parallel()
			all := ends(t, "a", "b", "stranger")
			a, b := all["a"], all["b"]
			l, err := net.Listen("tcp", "127.0.0.1:0") // where nothing answers
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			nowhere := l.Addr().(*net.TCPAddr).AddrPort()
			for _, e := range []*end{a, b} {
				e.addrs = func(o clustermesh.Origin) netip.AddrPort {
					if string(o.Node) == deaf {
						return nowhere
					}
					return all[string(o.Node)].addr
				}
			}
			both(a, b)
			talk(t, a, b, "hello")
		})
	}
}

// TestOlderDaemon: a daemon that has only streams of one direction and one that has both hear each
// other, whoever of them is the lower one.
func TestOlderDaemon(t *testing.T) {
	for _, other := range []string{"a", "z"} {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			all := ends(t, "older", other, "stranger")
			older, newer := all["older"], all[other]
			both(older, newer)
			talk(t, older, newer, "hello")
			if older.connections() != 1 || newer.connections() != 1 {
				t.Errorf("the older one has %d connections of others, the newer one %d, want 1 each", older.connections(), newer.connections())
			}
		})
	}
}

// TestFollowedLater: a daemon that does not write to a peer yet reads what that sends, and keeps
// the connection.
func TestFollowedLater(t *testing.T) {
	all := ends(t, "a", "b", "stranger")
	a, b := all["a"], all["b"]
	a.Follow(map[clustermesh.Origin]bool{b.self: true})
	a.Send(b.self, []byte("hello"))
	eventually(t, "b hears", func() bool { return b.got("a hello") })
	time.Sleep(readTimeout + heartbeat)
	if b.connections() != 1 {
		t.Errorf("%d connections", b.connections())
	}
	b.Follow(map[clustermesh.Origin]bool{a.self: true})
	talk(t, a, b, "now")
	if a.connections() != 0 || b.connections() != 1 {
		t.Errorf("a has %d connections of others, b %d, want 0 and 1", a.connections(), b.connections())
	}
	if a.do(func() {}); a.renewed != 0 {
		t.Errorf("%d streams were renewed, though none broke", a.renewed)
	}
}

// TestReplaces: both ends of two connections that were dialled at once keep the same one, and
// otherwise the later one counts, unless only the other is believed.
func TestReplaces(t *testing.T) {
	at := time.Now()
	low, high := named("a"), named("b")
	conn := func(peer clustermesh.Origin, dialled, believed bool, boot uint64, after time.Duration) *duplex {
		d := newDuplex(nil, Peer{Peer: member.Peer{ID: member.ID{Origin: peer, Boot: boot}}}, nil, dialled, believed)
		d.began = at.Add(after)
		return d
	}
	for i, c := range []struct {
		d, old *duplex
		self   clustermesh.Origin
		want   bool
	}{
		{conn(high, true, true, 1, 0), nil, low, true},
		// At once.
		{conn(high, true, true, 1, time.Second), conn(high, false, true, 1, 0), low, true},
		{conn(high, false, true, 1, time.Second), conn(high, true, true, 1, 0), low, false},
		{conn(low, false, true, 1, time.Second), conn(low, true, true, 1, 0), high, true},
		{conn(low, true, true, 1, time.Second), conn(low, false, true, 1, 0), high, false},
		// Later.
		{conn(high, false, true, 1, time.Minute), conn(high, true, true, 1, 0), low, true},
		{conn(low, true, true, 1, time.Minute), conn(low, false, true, 1, 0), high, true},
		{conn(high, false, true, 1, 0), conn(high, true, true, 1, time.Minute), low, false},
		// Of another life.
		{conn(high, false, true, 2, time.Second), conn(high, true, true, 1, 0), low, true},
		// Only one is believed.
		{conn(high, false, false, 1, time.Minute), conn(high, true, true, 1, 0), low, false},
		{conn(high, false, true, 1, 0), conn(high, true, false, 1, time.Minute), low, true},
	} {
		if got := c.d.replaces(c.old, c.self); got != c.want {
			t.Errorf("case %d: %v, want %v", i, got, c.want)
		}
	}
	over := conn(high, true, true, 1, time.Minute)
	close(over.gone)
	if !conn(high, false, false, 1, 0).replaces(over, low) {
		t.Error("one that has ended is not replaced")
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add([]byte("message"), 3)
	f.Add(bytes.Repeat([]byte{0xff}, 12), 0)
	f.Fuzz(func(t *testing.T, message []byte, more int) {
		var wire bytes.Buffer
		w := bufio.NewWriter(&wire)
		if err := WriteMessage(w, message); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		wire.WriteString(fmt.Sprint(more))
		got, err := ReadMessage(bufio.NewReader(&wire), nil)
		if err != nil || !bytes.Equal(got, message) {
			t.Errorf("%q, %v", got, err)
		}
		// Garbage is an error or a message, and takes no more memory than came.
		if got, err := ReadMessage(bufio.NewReader(bytes.NewReader(message)), nil); err == nil && len(got) > len(message) {
			t.Errorf("%d bytes of %d", len(got), len(message))
		}
	})
}
