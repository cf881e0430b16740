package sockdestroy

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// What a client sees of the end of its socket: when it receives or waits, and when it sends on UDP.
const (
	aborted = "software caused connection abort" // ECONNABORTED
	noPeer  = "destination address required"     // EDESTADDRREQ
)

// pass is one call of Destroy that must not fail.
func (m *machine) pass(want []datapath.Frontend, gone ...netip.Addr) Result {
	m.t.Helper()
	start := time.Now()
	r, err := m.Destroy(m.t.Context(), want, gone)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("pass: %+v in %v", r, time.Since(start))
	return r
}

func (m *machine) mustDestroy(t testing.TB, want []datapath.Frontend, n int) {
	t.Helper()
	r, err := m.Destroy(t.Context(), want, nil)
	if err != nil || r.UDP != n {
		t.Fatalf("got %+v, %v; want %d destroyed", r, err, n)
	}
}

func check[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestConnectedUDP: of two pods, the sockets that are connected to a removed backend fail at once and come to
// the new one when they connect again; no other socket notices.
func TestConnectedUDP(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m := newMachine(t, forced, Policy{})
		pods := []*pod{newPod(t), newPod(t)}
		for _, f := range forms {
			t.Run(string(f), func(t *testing.T) {
				m.t = t
				for i := range pods {
					pods[i].t = t
				}
				testConnectedUDP(t, m, pods, f)
			})
		}
	})
}

func testConnectedUDP(t *testing.T, m *machine, pods []*pod, f form) {
	want := m.set(old)
	was, is := f.backend(old).String(), f.backend(new_).String()
	type sockets struct{ balanced, direct, loose, stream, moved *socket }
	var all []sockets
	for _, p := range pods {
		s := sockets{
			balanced: p.open(unix.SOCK_DGRAM, f, f.vip()),
			direct:   p.open(unix.SOCK_DGRAM, f, f.backend(old)),
			loose:    p.open(unix.SOCK_DGRAM, f, netip.AddrPort{}),
			stream:   p.open(unix.SOCK_STREAM, f, f.vip()),
			moved:    p.open(unix.SOCK_DGRAM, f, f.vip()),
		}
		s.moved.connect(f.backend(new_)) // its record still names the old backend
		check(t, "balanced before", s.balanced.ask(), was)
		check(t, "loose before", s.loose.askAt(f.vip()), was)
		all = append(all, s)
	}
	check(t, "nothing stale", m.pass(want), Result{})
	want = m.set(new_)
	r := m.pass(want)
	check(t, "UDP destroyed", r.UDP, len(pods))
	check(t, "TCP destroyed", r.TCP, 0)
	check(t, "left", r.Left, 0)
	for _, s := range all {
		check(t, "balanced sends", s.balanced.ask(), noPeer)
		check(t, "balanced receives", s.balanced.receive(), aborted)
		check(t, "direct after", s.direct.ask(), was)
		check(t, "loose after", s.loose.askAt(f.vip()), is)
		check(t, "stream after", s.stream.ask(), was)
		check(t, "connected elsewhere after", s.moved.ask(), is)
		s.balanced.connect(f.vip())
		check(t, "balanced, connected again", s.balanced.ask(), is)
	}
	// The new connections are good, and the socket with a deceptive record is not looked for again.
	check(t, "second pass", m.pass(want), Result{})
	for _, s := range all {
		check(t, "balanced after second pass", s.balanced.ask(), is)
		for _, s := range []*socket{s.balanced, s.direct, s.loose, s.stream, s.moved} {
			s.close()
		}
	}
}

// TestWaiting: a client that waits for an answer which will never come gets an error.
func TestWaiting(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m, p := newMachine(t, forced, Policy{}), newPod(t)
		m.set(old)
		s := p.open(unix.SOCK_DGRAM, v4, v4.vip())
		want := m.set(new_)
		got := make(chan string, 1)
		go func() { got <- s.receive() }()
		time.Sleep(50 * time.Millisecond) // let it wait; if it does not yet, the test is a weaker one
		start := time.Now()
		check(t, "destroyed", m.pass(want).UDP, 1)
		check(t, "woken", <-got, aborted)
		t.Logf("woken %v after the call", time.Since(start))
	})
}

// TestFrontendRemoved: with the frontend go the connected UDP sockets that came through it.
func TestFrontendRemoved(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m, p := newMachine(t, forced, Policy{}), newPod(t)
		m.set(old)
		s := p.open(unix.SOCK_DGRAM, v4, v4.vip())
		if err := problem.Strict(m.lb.Reconcile(nil, true)); err != nil {
			t.Fatal(err)
		}
		check(t, "destroyed", m.pass(nil).UDP, 1)
		check(t, "after", s.receive(), aborted)
	})
}

// TestTCP: a stream is destroyed only if its backend's machine is dead and the policy asks for it.
func TestTCP(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m := newMachine(t, forced, Policy{TCP: TCPNever})
		p := newPod(t)
		for _, f := range forms {
			t.Run(string(f), func(t *testing.T) {
				m.t, p.t = t, t
				m.cfg.Policy.TCP = TCPNever
				m.set(old)
				was, dead := f.backend(old), f.backend(old).Addr()
				stream := p.open(unix.SOCK_STREAM, f, f.vip())
				direct := p.open(unix.SOCK_STREAM, f, was)
				want := m.set(new_)
				check(t, "never, machine gone", m.pass(want, dead).TCP, 0)
				m.cfg.Policy.TCP = TCPGone
				check(t, "gone, machine alive", m.pass(want), Result{})
				check(t, "gone, another machine dead", m.pass(want, netip.MustParseAddr("192.0.2.1")), Result{})
				check(t, "still", stream.ask(), was.String())
				if f != v6 { // there the new backend has the old one's address
					both := m.set(old, new_)
					check(t, "gone, but still a backend", m.pass(both, dead), Result{})
					want = m.set(new_)
				}
				check(t, "gone, machine dead", m.pass(want, dead).TCP, 1)
				check(t, "stream after", stream.ask(), aborted)
				check(t, "direct after", direct.ask(), was.String())
				stream.close()
				stream = p.open(unix.SOCK_STREAM, f, f.vip())
				check(t, "again", stream.ask(), f.backend(new_).String())
				stream.close()
				direct.close()
			})
		}
	})
}

// TestConnecting: a connect() that waits for a dead machine fails at once, instead of after minutes.
func TestConnecting(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m, p := newMachine(t, forced, Policy{TCP: TCPGone}), newPod(t)
		for _, f := range []form{v4, v6} {
			p.call("Stick", Call{Form: f}, nil)
			m.set(stuck)
			got := make(chan error, 1)
			go func() { got <- p.rpc.Call("Client.Open", Call{Kind: unix.SOCK_STREAM, Form: f, To: f.vip()}, new(int)) }()
			testutil.Eventually(t, 5*time.Second, func() error {
				records, err := m.records()
				if err == nil && len(records) == 0 {
					err = errors.New("no record")
				}
				return err
			})
			check(t, "destroyed", m.pass(m.set(new_), f.backend(stuck).Addr()).TCP, 1)
			if err := <-got; err == nil || err.Error() != aborted {
				t.Errorf("connect: got %v, want %s", err, aborted)
			}
		}
	})
}

// TestCrowd: thousands of sockets in the same namespace that dialled the backend directly are not harmed, and cost no more than
// looking at each.
func TestCrowd(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m, p := newMachine(t, forced, Policy{}), newPod(t)
		best := func() time.Duration {
			best := time.Hour
			for range 5 {
				m.set(old)
				s := p.open(unix.SOCK_DGRAM, v4, v4.vip())
				want := m.set(new_)
				start := time.Now()
				check(t, "destroyed", m.pass(want).UDP, 1)
				best = min(best, time.Since(start))
				check(t, "after", s.receive(), aborted)
				s.close()
			}
			return best
		}
		alone := best()
		others := testutil.Rounds(5000, 1000)
		var crowd []int
		start := time.Now()
		p.call("Many", Call{Kind: unix.SOCK_DGRAM, Form: v4, To: v4.backend(old), N: others}, &crowd)
		opening := time.Since(start)
		crowded := best()
		var dead int
		p.call("Dead", crowd, &dead)
		check(t, "sockets of the crowd", len(crowd), others)
		check(t, "harmed", dead, 0)
		t.Logf("a pass with %d other sockets %v, without %v; to open them took %v", others, crowded, alone, opening)
		// To look at a socket costs far less than the system calls that made it, on any machine.
		if crowded > alone+opening {
			t.Errorf("took %v, want at most %v", crowded, alone+opening)
		}
	})
}

// TestResolver: a DNS client that keeps its connected socket until it fails, as nginx does, has answers of the new
// backend within a moment.
func TestResolver(t *testing.T) {
	if !inside(t) {
		return
	}
	methods(t, func(t *testing.T, forced method) {
		m, p := newMachine(t, forced, Policy{}), newPod(t)
		m.set(old)
		s := p.open(unix.SOCK_DGRAM, v4, v4.vip())
		check(t, "before", s.ask(), v4.backend(old).String())
		start := time.Now()
		want := m.set(new_)
		flipped := time.Since(start)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		go func() {
			if _, err := m.Destroy(ctx, want, nil); err != nil {
				t.Error(err)
			}
			cancel()
		}()
		queries := 0
		for answer := ""; answer != v4.backend(new_).String(); queries++ {
			if time.Since(start) > 5*time.Second {
				t.Fatalf("no answer from the new backend in 5 s; last %q", answer)
			}
			if answer = s.ask(); answer == aborted || answer == noPeer {
				s.close()
				s = p.open(unix.SOCK_DGRAM, v4, v4.vip())
				answer = s.ask()
			}
		}
		t.Logf("flip took %v; the client had the new backend's answer %v after it began, at query %d", flipped, time.Since(start), queries)
		<-ctx.Done()
	})
}
