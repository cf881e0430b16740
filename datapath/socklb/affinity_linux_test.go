package socklb

import (
	"errors"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// affine is a frontend of nine backends with session affinity, and a way to choose through it.
type affine struct {
	t   testing.TB
	l   *LB
	f   family
	vip l4.Addr
	bs  []datapath.Backend
	// choose makes a socket choose: by connect() or by sendto().
	choose func(*client) error
}

func newAffine(t testing.TB, l *LB, f family, how string) *affine {
	a := &affine{t: t, l: l, f: f, vip: l4.New(f.vip, 80, l4.UDP)}
	for i := range uint16(9) {
		a.bs = append(a.bs, datapath.Backend{IP: f.pod, Port: 9000 + i, Weight: 1})
	}
	to := netip.AddrPortFrom(f.vip, 80)
	a.choose = map[string]func(*client) error{
		"connect": func(c *client) error { return c.connect(to) },
		"sendto":  func(c *client) error { return c.send(to) },
	}[how]
	return a
}

func (a *affine) want(seconds uint32, without ...netip.AddrPort) {
	a.t.Helper()
	f := datapath.Frontend{Addr: a.vip, AffinitySeconds: seconds}
	for _, b := range a.bs {
		if len(without) == 0 || b.AddrPort() != without[0] {
			f.Backends = append(f.Backends, b)
		}
	}
	reconcile(a.t, a.l, f)
}

// ask is what a fresh socket is given.
func (a *affine) ask() netip.AddrPort {
	a.t.Helper()
	c := newClient(a.t, a.f, unix.SOCK_DGRAM)
	defer c.close()
	if err := a.choose(c); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
		a.t.Error(err)
	}
	return flowOf(a.t, a.l, c)
}

// flowOf is the backend of a socket, from its record.
func flowOf(t testing.TB, l *LB, c *client) netip.AddrPort {
	t.Helper()
	cookie, err := unix.GetsockoptUint64(c.fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		t.Error(err)
	}
	rows, err := l.reader.Sockets()
	if err != nil {
		t.Error(err)
	}
	for _, r := range rows {
		if r.Cookie == cookie {
			return r.Backend
		}
	}
	t.Errorf("socket %d has no record", cookie)
	return netip.AddrPort{}
}

// elsewhere runs fn as a client of another network namespace, in the same cgroup.
func elsewhere(t testing.TB, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends here
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		if err := testutil.LoopbackUp(); err != nil {
			t.Error(err)
			return
		}
		fn()
	}()
	<-done
}

// TestAffinity: a client, which is a network namespace, keeps its backend as long as it comes again in time
// and the backend is in the set.
func TestAffinity(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for _, f := range families {
		for _, how := range []string{"connect", "sendto"} {
			t.Run(f.name+"/"+how, func(t *testing.T) { testAffinity(t, newAffine(t, l, f, how)) })
		}
	}
}

func testAffinity(t *testing.T, a *affine) {
	a.want(100)
	mine := a.ask()
	for range 20 {
		if got := a.ask(); got != mine {
			t.Fatalf("moved from %s to %s", mine, got)
		}
	}
	a.want(100, a.bs[0].AddrPort()) // a flip keeps it, wherever its slot is by then
	if mine == a.bs[0].AddrPort() {
		mine = a.ask()
	}
	a.want(200)
	if got := a.ask(); got != mine {
		t.Errorf("moved from %s to %s though only others came and went", mine, got)
	}
	others := map[netip.AddrPort]bool{}
	for range 8 {
		elsewhere(t, func() {
			first := a.ask()
			others[first] = true
			if got := a.ask(); got != first {
				t.Errorf("another client moved from %s to %s", first, got)
			}
		})
	}
	if len(others) < 2 { // by chance once in 9^7
		t.Errorf("all clients are given %v", others)
	}
	a.want(200, mine)
	next := a.ask()
	if next == mine {
		t.Errorf("given %s, which left the set", mine)
	}
	a.want(200)
	for range 20 {
		if got := a.ask(); got != next {
			t.Fatalf("went from %s, which it kept, to %s", next, got)
		}
	}
	rows, err := a.l.reader.Affinity()
	mineRows := 0
	for _, r := range rows {
		if r.Frontend == a.vip && r.Backend == next && r.IdleSeconds < 60 {
			mineRows++
		}
	}
	if err != nil || mineRows == 0 {
		t.Errorf("affinity of %s to %s is not among %v, %v", a.vip, next, rows, err)
	}
	a.want(0)
	seen := map[netip.AddrPort]bool{}
	for range 50 {
		seen[a.ask()] = true
	}
	if len(seen) < 3 {
		t.Errorf("without affinity only %v are given", seen)
	}
}

// TestAffinityExpires: not before the time-out after the last connection, and after it.
func TestAffinityExpires(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for _, how := range []string{"connect", "sendto"} {
		a := newAffine(t, l, families[0], how)
		a.want(2)
		start := time.Now()
		mine := a.ask()
		for time.Since(start) < 3*time.Second { // each use restarts the time
			used := time.Now()
			got := a.ask()
			if late := time.Since(used); got != mine && late < time.Second {
				t.Fatalf("%s: moved from %s to %s in use, after %v", how, mine, got, time.Since(start))
			}
			time.Sleep(300 * time.Millisecond)
		}
		moved := false
		for n := 0; n < 3 && !moved; n++ { // by chance it is given the same, once in 9
			time.Sleep(2100 * time.Millisecond)
			moved = a.ask() != mine
		}
		if !moved {
			t.Errorf("%s: still given %s after the time-out", how, mine)
		}
	}
}

// atOnce connects four fresh sockets at the same moment, and returns what they are given.
func (a *affine) atOnce() map[netip.AddrPort]bool {
	a.t.Helper()
	const n = 4
	var ready atomic.Int32
	given := make(chan netip.AddrPort, n)
	for range n {
		go func() {
			c := newClient(a.t, a.f, unix.SOCK_DGRAM)
			defer c.close()
			ready.Add(1)
			for ready.Load() < n { // a channel would wake one after the other
				runtime.Gosched()
			}
			if err := c.connect(netip.AddrPortFrom(a.f.vip, a.vip.Port)); err != nil {
				a.t.Error(err)
			}
			given <- flowOf(a.t, a.l, c)
		}()
	}
	seen := map[netip.AddrPort]bool{}
	for range n {
		seen[<-given] = true
	}
	return seen
}

// TestAffinityAtOnce: connections at the same moment agree on a backend, be they a client's first, or the first
// since it was away for too long or its backend left.
func TestAffinityAtOnce(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for name, begin := range map[string]func(a *affine, n int){
		"first": func(a *affine, n int) {
			a.vip.Port = uint16(1000 + n)
			a.want(100)
		},
		"away": func(a *affine, _ int) {
			a.want(100)
			a.ask()
			a.expire()
		},
		"left": func(a *affine, _ int) {
			a.want(100)
			a.want(100, a.ask())
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAffine(t, l, families[0], "connect")
			for n := range testutil.Rounds(300, 40) {
				begin(a, n)
				if seen := a.atOnce(); len(seen) != 1 {
					t.Fatalf("%d: sockets of one client that came at once were given %v", n, seen)
				}
			}
		})
	}
}

// expire makes all clients of the frontend seem to have been away for long.
func (a *affine) expire() {
	a.t.Helper()
	found := map[layout.AffinityKey]layout.Affinity{}
	err := layout.Each(a.l.maps.Affinities, func(k layout.AffinityKey, v layout.Affinity) error {
		if k.Frontend.L4() == a.vip {
			found[k] = v
		}
		return nil
	})
	for k, v := range found {
		v.Used -= uint64(time.Hour)
		err = errors.Join(err, a.l.maps.Affinities.Put(k, v))
	}
	if err != nil || len(found) == 0 {
		a.t.Fatalf("%d clients, %v", len(found), err)
	}
}

// TestAffinityIsBounded: more clients than there is room for, and everyone still connects.
func TestAffinityIsBounded(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxAffinity = 64
	cfg.MaxFrontends = 2048
	cfg.MaxBackends = 4096
	l := opened(t, cfg)
	f := families[0]
	var want []datapath.Frontend
	for n := range uint16(1000) {
		want = append(want, datapath.Frontend{Addr: l4.New(f.vip, 1000+n, l4.UDP), AffinitySeconds: 100, Backends: backends("127.0.0.2:9", "127.0.0.3:9")})
	}
	reconcile(t, l, want...)
	for n := range uint16(1000) {
		c := newClient(t, f, unix.SOCK_DGRAM)
		if err := c.connect(netip.AddrPortFrom(f.vip, 1000+n)); err != nil {
			t.Fatal(err)
		}
		c.close()
	}
	for _, u := range l.Usage() {
		if u.Map == layout.MapAffinities && (u.Used == 0 || u.Used > u.Limit || u.Limit > 1024) {
			t.Errorf("%+v after 1000 clients", u)
		}
	}
}
