package socklb

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// countRecords counts the records of live sockets: at home, and in the sockets' own storage. It fails if one is in the map
// that no layout writes any more.
func countRecords(t testing.TB, l *LB) (home, stored int) {
	t.Helper()
	var i uint32
	var r layout.Record
	for it := l.maps.Sockets.Iterate(); it.Next(&i, &r); {
		if r.Cookie != 0 {
			home++
		}
		if r.Spilled != 0 {
			t.Errorf("home %d counts %d records in %s", i, r.Spilled, layout.MapSocketsMore)
		}
	}
	var k layout.MoreKey
	var f layout.Flow
	if l.maps.SocketsMore.Iterate().Next(&k, &f) {
		t.Errorf("%s has a record of socket %d", layout.MapSocketsMore, k.Cookie)
	}
	rows, err := l.reader.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Overflow {
			stored++
		}
	}
	return home, stored
}

// settle is how long the kernel may take to release sockets that were closed.
const settle = 10 * time.Second

// wantRecords waits until there are so many records, at least and at most. The kernel releases a closed socket only when
// the last reference to its file is gone, and a process that looks through all open files, such as bpftool, can hold one
// for a while. So records that seem to be left are no leak yet.
func wantRecords(t testing.TB, l *LB, least, most int) {
	t.Helper()
	testutil.Eventually(t, settle, func() error {
		home, stored := countRecords(t, l)
		if n := home + stored; n < least || n > most {
			return fmt.Errorf("%d records at home and %d stored, want %d to %d", home, stored, least, most)
		}
		return nil
	})
}

// noRecords waits until nothing is left of sockets that were closed.
func noRecords(t testing.TB, l *LB) {
	t.Helper()
	wantRecords(t, l, 0, 0)
}

// TestRecords: a socket whose home is taken has its record elsewhere, none is overwritten, and all are
// gone when the sockets are.
func TestRecords(t *testing.T) {
	if !inside(t) {
		return
	}
	for _, tt := range []struct {
		name    string
		size    uint32
		sockets int
	}{
		{"roomy", 1024, 50},
		{"crowded", 64, 100},
		{"one home", 1, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config(t)
			cfg.MaxSockets = tt.size
			l := opened(t, cfg)
			for _, f := range families {
				t.Run(f.name, func(t *testing.T) { testRecords(t, l, f, tt.sockets) })
			}
		})
	}
}

func testRecords(t *testing.T, l *LB, f family, sockets int) {
	pod := serve(t, l4.UDP, netip.AddrPortFrom(f.pod, 0))
	vip := netip.AddrPortFrom(f.vip, 80)
	reconcile(t, l, datapath.Frontend{Addr: l4.New(f.vip, 80, l4.UDP), Backends: one(pod)})
	for range 2 { // twice: what the first left must not be in the way of the second
		var clients []*client
		for range sockets {
			c := newClient(t, f, unix.SOCK_DGRAM)
			clients = append(clients, c)
			if err := c.connect(vip); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range clients {
			if err := c.write(); err != nil {
				t.Fatal(err)
			}
			text, from, err := c.receive()
			if err != nil || text != pod.String() {
				t.Fatalf("answer %q, %v", text, err)
			}
			if peer, err := c.peer(); err != nil || peer != from || peer != vip {
				t.Fatalf("getpeername %v, %v; recvfrom %v", peer, err, from)
			}
		}
		wantRecords(t, l, sockets, sockets)
		for _, c := range clients {
			c.close()
		}
		noRecords(t, l)
	}
}

// TestSticky: an unconnected socket keeps its backend through changes of the set, until it leaves.
func TestSticky(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { testSticky(t, l, f) })
	}
}

func testSticky(t *testing.T, l *LB, f family) {
	vip := l4.New(f.vip, 80, l4.UDP)
	pods := map[string]datapath.Backend{}
	all := func(weight uint32, but string) []datapath.Backend {
		var bs []datapath.Backend
		for text, b := range pods {
			b.Weight = weight
			if text != but {
				bs = append(bs, b)
			}
		}
		return bs
	}
	for range 9 {
		at := serve(t, l4.UDP, netip.AddrPortFrom(f.pod, 0))
		pods[at.String()] = one(at)[0]
	}
	c := newClient(t, f, unix.SOCK_DGRAM)
	defer c.close()
	ask := func() string {
		t.Helper()
		if err := c.send(netip.AddrPortFrom(vip.IP, vip.Port)); err != nil {
			t.Fatal(err)
		}
		text, from, err := c.receive()
		if err != nil || from != netip.AddrPortFrom(vip.IP, vip.Port) {
			t.Fatalf("answer from %v, %v", from, err)
		}
		return text
	}
	reconcile(t, l, datapath.Frontend{Addr: vip, Backends: all(1, "")})
	mine := ask()
	for other := range pods {
		if other == mine {
			continue
		}
		for _, bs := range [][]datapath.Backend{all(1, other), all(3, ""), all(1, other)} {
			reconcile(t, l, datapath.Frontend{Addr: vip, Backends: bs})
			if got := ask(); got != mine {
				t.Fatalf("moved from %s to %s though only %s left", mine, got, other)
			}
		}
	}
	reconcile(t, l, datapath.Frontend{Addr: vip, Backends: all(1, mine)})
	next := ask()
	if next == mine {
		t.Fatalf("still asks %s, which left", mine)
	}
	reconcile(t, l, datapath.Frontend{Addr: vip, Backends: all(1, "")})
	if got := ask(); got != next {
		t.Errorf("moved from %s to %s though no backend left", next, got)
	}
	wantRecords(t, l, 1, 1) // for one socket and one frontend
}

// TestManyFrontends: one unconnected socket, many frontends, two threads: every answer is shown as from the
// frontend that was asked, up to the bound; beyond it traffic still flows.
func TestManyFrontends(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	const kept = 33 // 1 at home, MAX_MORE beside
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			var want []datapath.Frontend
			podOf := map[uint16]netip.AddrPort{}
			for i := range uint16(40) {
				pod := serve(t, l4.UDP, netip.AddrPortFrom(f.pod, 0))
				podOf[i+1] = pod
				want = append(want, datapath.Frontend{Addr: l4.New(f.vip, i+1, l4.UDP), Backends: one(pod)})
			}
			reconcile(t, l, want...)
			c := newClient(t, f, unix.SOCK_DGRAM)
			defer c.close()
			for port := uint16(1); port <= 40; port++ {
				vip := netip.AddrPortFrom(f.vip, port)
				if err := c.send(vip); err != nil {
					t.Fatal(err)
				}
				text, from, err := c.receive()
				if err != nil || text != podOf[port].String() {
					t.Errorf("port %d: %q, %v", port, text, err)
				}
				if port <= kept && from != vip || port > kept && from != podOf[port] {
					t.Errorf("port %d: answer shown from %v", port, from)
				}
			}
			testTwoThreads(t, c, podOf)
		})
	}
}

func testTwoThreads(t *testing.T, c *client, podOf map[uint16]netip.AddrPort) {
	portOf := map[string]uint16{}
	for port, pod := range podOf {
		portOf[pod.String()] = port
	}
	var wg sync.WaitGroup
	for _, port := range []uint16{2, 3} {
		wg.Go(func() {
			for range 500 {
				if err := c.send(netip.AddrPortFrom(c.f.vip, port)); err != nil {
					t.Error(err)
				}
				// Either thread may get the other's answer; it must be labelled rightly all the same.
				text, from, err := c.receive()
				if err != nil || from != netip.AddrPortFrom(c.f.vip, portOf[text]) {
					t.Errorf("%q is shown from %v, %v", text, from, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestFlowOutlivesBackend: a connection goes on when its backend leaves the set, and when the frontend is
// removed; one that was direct is not touched by a frontend that comes later.
func TestFlowOutlivesBackend(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for _, f := range families {
		pod := serve(t, l4.UDP, netip.AddrPortFrom(f.pod, 0))
		vip := l4.New(f.vip, 80, l4.UDP)
		direct := newClient(t, f, unix.SOCK_DGRAM)
		if err := direct.connect(pod); err != nil {
			t.Fatal(err)
		}
		reconcile(t, l, datapath.Frontend{Addr: vip, Backends: one(pod)})
		c := newClient(t, f, unix.SOCK_DGRAM)
		if err := c.connect(netip.AddrPortFrom(vip.IP, vip.Port)); err != nil {
			t.Fatal(err)
		}
		for _, want := range [][]datapath.Frontend{{{Addr: vip, Backends: backends()}}, nil, {{Addr: vip, Backends: one(pod)}}} {
			reconcile(t, l, want...)
			for sock, see := range map[*client]netip.AddrPort{c: netip.AddrPortFrom(vip.IP, vip.Port), direct: pod} {
				if err := sock.write(); err != nil {
					t.Fatal(err)
				}
				text, from, err := sock.receive()
				peer, _ := sock.peer()
				if err != nil || text != pod.String() || from != see || peer != see {
					t.Errorf("%s: answer %q from %v (getpeername %v), %v; want %v", f.name, text, from, peer, err, see)
				}
			}
		}
		c.close()
		direct.close()
	}
}

// TestRecordsOfFewSockets: a list of sockets takes no memory for places that no socket has. A daemon makes it after each
// change that takes a backend away.
func TestRecordsOfFewSockets(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxSockets = 1 << 14
	l := opened(t, cfg)
	var err error
	allocs := testing.AllocsPerRun(5, func() {
		err = errors.Join(err, l.Look(func(r *inspect.Reader) error {
			_, err := r.Sockets()
			return err
		}))
	})
	if err != nil || allocs > 1000 {
		t.Errorf("%.0f allocations for %d places without a socket, %v", allocs, cfg.MaxSockets, err)
	}
}
