package socklb

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// churned is a frontend whose set changes all the time, with the history of its sets.
type churned struct {
	vip  l4.Addr
	pods []netip.AddrPort
	// history holds the members of each set that was ever wanted, as bits over pods.
	history [1 << 20]atomic.Uint32
	// applied and wanted are the last entries of history that surely, and possibly, are in force.
	applied, wanted atomic.Int64
}

// next draws another set, never an empty one, and returns the frontend with it.
func (c *churned) next() datapath.Frontend {
	members := rand.Uint32N(1<<len(c.pods)-1) + 1
	n := c.wanted.Load() + 1
	c.history[n].Store(members)
	c.wanted.Store(n)
	f := datapath.Frontend{Addr: c.vip}
	for i, p := range c.pods {
		if members&(1<<i) != 0 {
			f.Backends = append(f.Backends, datapath.Backend{IP: p.Addr(), Port: p.Port(), Weight: 1 + rand.Uint32N(3)})
		}
	}
	return f
}

// allows reports whether pod was in a set that was in force at some time from the moment at which applied
// was first.
func (c *churned) allows(pod string, first int64) bool {
	for n := first; n <= c.wanted.Load(); n++ {
		for i, p := range c.pods {
			if c.history[n].Load()&(1<<i) != 0 && p.String() == pod {
				return true
			}
		}
	}
	return false
}

func newChurned(t testing.TB, f family, port uint16) *churned {
	c := &churned{vip: l4.New(f.vip, port, l4.TCP)}
	for range 5 {
		c.pods = append(c.pods, serve(t, l4.TCP, netip.AddrPortFrom(f.pod, 0)))
	}
	return c
}

// ask opens a connection through the frontend and returns who answers.
func ask(t testing.TB, f family, vip l4.Addr) (string, error) {
	c := newClient(t, f, unix.SOCK_STREAM)
	defer c.close()
	// Closing by reset leaves no TIME_WAIT, so that ports do not run out.
	if err := unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return "", err
	}
	if err := c.connect(netip.AddrPortFrom(vip.IP, vip.Port)); err != nil {
		return "", err
	}
	text, _, err := c.receive()
	if errors.Is(err, unix.EAGAIN) {
		// A pod that waits for a word first is another frontend's: let it say who it is.
		if err = c.write(); err == nil {
			text, _, err = c.receive()
		}
	}
	if err != nil {
		local, _ := unix.Getsockname(c.fd) // nothing, if the connection is gone
		return "", fmt.Errorf("connected from %v, no answer: %w", addrPortOf(local), err)
	}
	return text, nil
}

// endless is a storm that only stop ends.
const endless = 1 << 40

// breathe lets an emulated processor come to what an endless storm is to meet.
func breathe() {
	if testing.Short() {
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// storm connects to the frontends from several goroutines until stopped or enough, and returns how often.
func storm(t testing.TB, f family, fronts []*churned, enough int64, stop *atomic.Bool) int64 {
	var count, failed atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() && count.Load() < enough && failed.Load() < 10 {
				c := fronts[rand.IntN(len(fronts))]
				first := c.applied.Load()
				pod, err := ask(t, f, c.vip)
				if err != nil {
					failed.Add(1)
					t.Errorf("connect to %s: %v", c.vip, err)
				} else if !c.allows(pod, first) {
					failed.Add(1)
					t.Errorf("connect to %s was answered by %q, which was in no set in force", c.vip, pod)
				}
				count.Add(1)
				if enough == endless {
					breathe()
				}
			}
		})
	}
	wg.Wait()
	return count.Load()
}

// flip gives each frontend its next set, with one more frontend that comes and goes.
func flip(t testing.TB, l *LB, fronts []*churned, n int) {
	var want []datapath.Frontend
	for _, c := range fronts {
		want = append(want, c.next())
	}
	if n%8 < 4 {
		want = append(want, datapath.Frontend{Addr: l4.New(fronts[0].vip.IP, uint16(1000+n%3), l4.TCP), Backends: one(fronts[0].pods[0])})
	}
	if err := problem.Strict(l.Reconcile(want, true)); err != nil {
		t.Error(err)
	}
	for _, c := range fronts {
		c.applied.Store(c.wanted.Load())
	}
}

// TestStorm: connections made while sets flip without pause never fail, and never reach a backend that
// was in no set of their own frontend. Slots are few, so that they are soon used again.
func TestStorm(t *testing.T) {
	if !insideParallel(t) {
		return
	}
	cfg := config(t)
	cfg.MaxBackends = 128
	l := opened(t, cfg)
	total, flips, each := int64(0), 0, int64(testutil.Rounds(20_000, 1_000))
	for _, f := range families {
		fronts := []*churned{newChurned(t, f, 80), newChurned(t, f, 81)}
		flip(t, l, fronts, 0)
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() { total += storm(t, f, fronts, each, &stop); stop.Store(true) })
		start := time.Now()
		for n := 1; !stop.Load(); n++ {
			flip(t, l, fronts, n)
			flips += len(fronts)
		}
		wg.Wait()
		t.Logf("%s: %v, %d connects, %d flips so far", f.name, time.Since(start).Round(time.Millisecond), total, flips)
	}
	if total < each*int64(len(families)) || flips < testutil.Rounds(100, 20) {
		t.Errorf("%d connects during %d flips: too few to tell", total, flips)
	}
}

// TestRestart: the balancer is closed and opened again and again, and its sets change, while connections
// are made. None fails, and frontends keep their indexes.
func TestRestart(t *testing.T) {
	if !insideParallel(t) {
		return
	}
	cfg := config(t)
	l := opened(t, cfg)
	f := families[0]
	fronts := []*churned{newChurned(t, f, 80), newChurned(t, f, 81)}
	flip(t, l, fronts, 0)
	index := indexes(l)
	var stop atomic.Bool
	var wg sync.WaitGroup
	var connects int64
	wg.Go(func() { connects = storm(t, f, fronts, endless, &stop) })
	restarts := testutil.Rounds(20, 4)
	for n := range restarts {
		before, err := l.Frontends()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = Open(cfg); err != nil {
			t.Fatal(err)
		}
		checkInstalled(t, "after restart", l, before)
		for a, i := range indexes(l) {
			if old, ok := index[a]; ok && old != i {
				t.Errorf("%s had index %d, has %d", a, old, i)
			}
		}
		flip(t, l, fronts, n)
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d connects during %d restarts", connects, restarts)
	if connects < int64(testutil.Rounds(100, 20)) {
		t.Error("too few connects to tell")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func indexes(l *LB) map[l4.Addr]uint32 {
	out := map[l4.Addr]uint32{}
	for a, h := range l.table.installed {
		if a.Port < 1000 { // the others come and go
			out[a] = h.index
		}
	}
	return out
}

// TestWeights: connections, and the first datagrams of unconnected sockets, fall on backends by weight.
func TestWeights(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	// Each socket has a home of its own: that of one that was closed can stay taken for a while; see wantRecords.
	cfg.MaxSockets = DefaultMaxSockets
	l := opened(t, cfg)
	f := families[0]
	vip := l4.New(f.vip, 80, l4.UDP)
	bs := backends("127.0.0.2:9001*1", "127.0.0.3:9001*3")
	reconcile(t, l, datapath.Frontend{Addr: vip, Backends: bs})
	dial := map[string]func(c *client) error{
		"connect": func(c *client) error { return c.connect(netip.AddrPortFrom(vip.IP, vip.Port)) },
		"sendto":  func(c *client) error { return c.send(netip.AddrPortFrom(vip.IP, vip.Port)) },
	}
	for name, dial := range dial {
		n := testutil.Rounds(20_000, 4_000)
		hits := map[netip.Addr]int{}
		for range n {
			c := newClient(t, f, unix.SOCK_DGRAM)
			if err := dial(c); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
				t.Fatal(err)
			}
			hits[chosen(t, l, c)]++
			c.close()
		}
		deviation := math.Sqrt(0.75 * 0.25 / float64(n)) // of the share: 0.3 % of 20,000
		if share := float64(hits[bs[1].IP]) / float64(n); math.Abs(share-0.75) > 5*deviation {
			t.Errorf("%s: weight 3 of 4 got %.4f of %d: %v", name, share, n, hits)
		}
	}
}

// chosen is the backend of a socket, from its record.
func chosen(t testing.TB, l *LB, c *client) netip.Addr {
	t.Helper()
	cookie, err := unix.GetsockoptUint64(c.fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		t.Fatal(err)
	}
	var r layout.Record
	if err := l.maps.Sockets.Lookup(uint32(cookie)&(l.maps.Sockets.MaxEntries()-1), &r); err != nil {
		t.Fatal(err)
	}
	if r.Cookie != cookie {
		t.Fatalf("home of socket %d belongs to %d", cookie, r.Cookie)
	}
	return netip.AddrFrom16(r.Flow.Backend).Unmap()
}
