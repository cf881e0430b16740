package pool

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"strait.io/strait/internal/l4"
)

func addrOf(a, b int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(a), byte(b)}) }

// TestDoor: a source that uses its share up loses its own oldest connection that has sent nothing,
// or any if all have; and when all is full the source with the most loses one.
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
	d.spoke(greedy[0])
	in, first := enter(addrOf(0, 1))
	if first != greedy[1] || !first.crowded || in.crowded {
		t.Fatal("beyond its share, a source does not lose the oldest that has sent nothing")
	}
	greedy = append(slices.DeleteFunc(greedy, func(v *visitor) bool { return v == first }), in)
	for i := 0; d.n < maxWaiting; i++ {
		if _, out := enter(addrOf(1, i)); out != nil {
			t.Fatal("one had to go though there is room")
		}
	}
	_, out := enter(addrOf(2, 1))
	if !slices.Contains(greedy, out) || d.n != maxWaiting {
		t.Fatalf("a full door holds %d, and lets %v go", d.n, out)
	}
	greedy = slices.DeleteFunc(greedy, func(v *visitor) bool { return v == out })
	if !d.leave(out) || d.leave(greedy[0]) || d.leave(greedy[1]) || d.n != maxWaiting-2 || len(d.waiting[l4.Source(addrOf(0, 1))]) != maxPerSource-3 {
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

// TestManyBehindOneAddress: of many nodes with one address, whose connections come faster than they
// get through, each gets through in the end.
func TestManyBehindOneAddress(t *testing.T) {
	const nodes, needed = 60, 2 * maxPerSource // so many others come before one has proven itself
	d := newDoor()
	type attempt struct {
		*visitor
		node int
		at   int
	}
	var waiting []attempt
	through := map[int]bool{}
	came := 0
	for ; len(through) < nodes && came < 10_000; came++ {
		waiting = slices.DeleteFunc(waiting, func(a attempt) bool {
			if !a.crowded && came-a.at >= needed {
				d.leave(a.visitor)
				through[a.node] = true
				return true
			}
			return a.crowded
		})
		node := came % nodes
		in, _ := d.enter(nil, addrOf(0, 1))
		d.spoke(in)
		waiting = append(waiting, attempt{in, node, came})
	}
	if len(through) < nodes {
		t.Errorf("%d of %d got through", len(through), nodes)
	}
	t.Logf("all got through after %d connections", came)
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
