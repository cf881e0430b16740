package pool

import (
	"net"
	"net/netip"
	"testing"

	"strait.io/strait/internal/l4"
)

func addrOf(a, b int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(a), byte(b)}) }

// TestDoor: a source that uses its share up loses its own oldest connection, and when all is full the
// source with the most loses one.
func TestDoor(t *testing.T) {
	d := newDoor()
	enter := func(a netip.Addr) (in, out *visitor) { return d.enter((*net.TCPConn)(nil), a) }
	var greedy []*visitor
	for range maxPerSource {
		in, out := enter(addrOf(0, 1))
		if out != nil {
			t.Fatal("one had to go though there is room")
		}
		greedy = append(greedy, in)
	}
	in, out := enter(addrOf(0, 1))
	if out != greedy[0] || !out.crowded || in.crowded {
		t.Fatal("beyond its share, a source does not lose its oldest")
	}
	for i := 0; d.n < maxWaiting; i++ {
		if _, out := enter(addrOf(1, i)); out != nil {
			t.Fatal("one had to go though there is room")
		}
	}
	if _, out := enter(addrOf(2, 1)); out != greedy[1] || d.n != maxWaiting {
		t.Fatalf("a full door holds %d, and lets %v go", d.n, out)
	}
	if !d.leave(greedy[1]) || d.leave(greedy[2]) || d.leave(in) || d.n != maxWaiting-2 || len(d.waiting[l4.Source(addrOf(0, 1))]) != maxPerSource-3 {
		t.Fatalf("%d wait, and %d of the greedy source", d.n, len(d.waiting[l4.Source(addrOf(0, 1))]))
	}
}

// TestDoorOfMany: of many sources with one connection each, the oldest has to go.
func TestDoorOfMany(t *testing.T) {
	d := newDoor()
	var all []*visitor
	for i := range 3 * maxWaiting {
		in, out := d.enter(nil, addrOf(i>>8, i))
		all = append(all, in)
		if i >= maxWaiting && out != all[i-maxWaiting] {
			t.Fatalf("for number %d, %v had to go", i, out)
		}
	}
}

// TestSource: a network of 64 bits is one source, and so is an IPv4 address.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"2001:db8::1", "2001:db8::ffff:1", true}, {"2001:db8::1", "2001:db8:0:1::1", false},
		{"192.0.2.1", "192.0.2.1", true}, {"192.0.2.1", "192.0.2.2", false},
	} {
		if same := l4.Source(netip.MustParseAddr(c.a)) == l4.Source(netip.MustParseAddr(c.b)); same != c.same {
			t.Errorf("%s and %s: one source is %v", c.a, c.b, same)
		}
	}
}
