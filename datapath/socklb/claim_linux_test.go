package socklb

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// TestClaims: threads that make and close sockets as fast as they can, on so few homes that they are always in
// each other's way. Every socket sees its frontend, no record outlives its socket, and no claim stays.
func TestClaims(t *testing.T) {
	if !inside(t) {
		return
	}
	const threads, times = 4, 40_000
	limit := time.Duration(testutil.Rounds(10, 2)) * time.Second // for emulated machines
	cfg := config(t)
	cfg.MaxSockets = threads
	l := opened(t, cfg)
	for i, f := range families {
		t.Run(f.name, func(t *testing.T) {
			vip := netip.AddrPortFrom(f.vip, uint16(80+i))
			front := datapath.Frontend{Addr: l4.New(vip.Addr(), vip.Port(), l4.UDP)}
			for port := range uint16(threads) {
				front.Backends = append(front.Backends, one(netip.AddrPortFrom(f.pod, 9000+port))...)
			}
			reconcile(t, l, front)
			done, until := make(chan int, threads), time.Now().Add(limit)
			for range threads {
				go func() {
					runtime.LockOSThread() // never unlocked: else two could take turns on one thread
					lies := 0
					for i := 0; i < times && time.Now().Before(until); i++ {
						if !seesFrontend(t, f, vip) {
							lies++
						}
					}
					done <- lies
				}()
			}
			for range threads {
				if lies := <-done; lies > 0 {
					t.Errorf("%d of at most %d sockets do not see the frontend", lies, times)
				}
			}
			noRecords(t, l)
		})
	}
}

// seesFrontend connects a fresh socket twice, and looks at its peer each time.
func seesFrontend(t *testing.T, f family, vip netip.AddrPort) bool {
	c := newClient(t, f, unix.SOCK_DGRAM)
	defer c.close()
	for range 2 {
		if err := c.connect(vip); err != nil {
			t.Error(err)
			return false
		}
		if peer, err := c.peer(); err != nil || peer != vip {
			return false
		}
	}
	return true
}

// TestChoosesAnew: each connect() of a socket is a new choice, whether its record is at home or in its own storage.
func TestChoosesAnew(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxSockets = 1
	l := opened(t, cfg)
	for i, f := range families {
		t.Run(f.name, func(t *testing.T) { testChoosesAnew(t, l, f, uint16(80+i)) })
	}
}

func testChoosesAnew(t *testing.T, l *LB, f family, at uint16) {
	front := datapath.Frontend{Addr: l4.New(f.vip, at, l4.UDP)}
	for port := range uint16(9) {
		front.Backends = append(front.Backends, one(netip.AddrPortFrom(f.pod, 9000+port))...)
	}
	reconcile(t, l, front)
	for _, where := range []string{"at home", "stored"} {
		c := newClient(t, f, unix.SOCK_DGRAM)
		defer c.close() // when all have had their turn: each is in the way of the next
		before := countsOf(t, l, front.Addr)
		for range 90 {
			if err := c.connect(netip.AddrPortFrom(f.vip, at)); err != nil {
				t.Fatal(err)
			}
		}
		after, chosen := countsOf(t, l, front.Addr), 0
		for b, n := range after.backends {
			if n > before.backends[b] {
				chosen++
			}
		}
		if chosen < 7 { // by chance far less than once in 10^9
			t.Errorf("record %s: 90 connects of a socket fell on %d of 9 backends", where, chosen)
		}
	}
}

// TestOwner: the cookie of a record is that of its owner, whichever other socket tries to take the place meanwhile.
func TestOwner(t *testing.T) {
	const claim = 1 << (64 - layout.ClaimBits)
	down := uint64(3)
	down = -down // as the kernel counts cookies that are made in an interrupt
	for _, cookie := range []uint64{0, 1, 1<<47 - 1, down} {
		for claims := range uint64(3) {
			if got := (layout.Record{Cookie: cookie + claims*claim}).Owner(); got != cookie {
				t.Errorf("cookie %#x with %d claims: owner %#x", cookie, claims, got)
			}
		}
	}
}
