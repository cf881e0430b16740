package tunnelhealth

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lab is peers with tunnels to them, in a time of its own.
type lab struct {
	w     *Watch
	now   time.Time
	ways  map[netip.Addr]*way
	id    uint64
	air   []packet
	sent  int
	asked time.Time
}

// way is what happens to packets to a peer and back, and WireGuard's state of it.
type way struct {
	there, back bool
	mute        bool // answers no echo requests
	limit       int  // larger packets are lost; 0 is none
	lose        int  // every so many probes one is lost; 0 is none
	rtt         time.Duration
	device      Device
	n           int
}

type packet struct {
	from netip.Addr
	id   uint64
	at   time.Time
}

func newLab(ways ...*way) *lab {
	l := &lab{w: New(), now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), ways: map[netip.Addr]*way{}}
	for i, y := range ways {
		l.ways[addr(i)] = y
		if y.there && y.back {
			y.device.Handshake = l.now
		}
	}
	l.track()
	return l
}

func (l *lab) track() {
	peers := map[netip.Addr]Peer{}
	for a := range l.ways {
		peers[a] = Peer{Traffic: true, Size: 1420}
	}
	l.w.Track(peers, l.now)
}

func addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

func open() *way { return &way{there: true, back: true, rtt: 20 * time.Millisecond} }

// pass lets time pass, as the daemon does, until a condition holds; it returns how long that took.
func (l *lab) pass(t *testing.T, limit time.Duration, until func() bool) time.Duration {
	t.Helper()
	began := l.now
	for l.now.Sub(began) < limit {
		if until != nil && until() {
			return l.now.Sub(began)
		}
		l.step()
	}
	if until != nil {
		t.Fatalf("not within %s: %+v", limit, l.w.Verdicts())
	}
	return limit
}

func (l *lab) step() {
	l.now = l.now.Add(100 * time.Millisecond)
	var later []packet
	for _, p := range l.air {
		if p.at.After(l.now) {
			later = append(later, p)
			continue
		}
		l.w.Answered(p.from, p.id, p.at)
	}
	l.air = later
	for _, d := range l.w.Due(l.now) {
		l.id++
		l.sent++
		l.w.Sent(d, l.id, l.now)
		l.deliver(d)
	}
	if l.now.Sub(l.asked) >= time.Second {
		l.asked = l.now
		l.read()
	}
	l.w.Judge(l.now)
}

func (l *lab) deliver(d Probe) {
	y := l.ways[d.To]
	if y.n++; y.mute || !y.there || !y.back || y.limit > 0 && d.Size > y.limit || y.lose > 0 && y.n%y.lose == 0 {
		return
	}
	l.air = append(l.air, packet{d.To, l.id, l.now.Add(y.rtt)})
}

// read lets WireGuard count: what the peer sends, and a handshake each two minutes, which needs
// both ways.
func (l *lab) read() {
	devices := map[netip.Addr]Device{}
	for a, y := range l.ways {
		if y.back {
			y.device.Received += 100
		}
		if y.there && y.back && l.now.Sub(y.device.Handshake) >= 2*time.Minute {
			y.device.Handshake = l.now
		}
		devices[a] = y.device
	}
	l.w.Read(devices, l.now)
}

func (l *lab) state(i int) State { return l.w.Verdicts()[addr(i)].State }

func (l *lab) is(i int, s State) func() bool { return func() bool { return l.state(i) == s } }

func TestStates(t *testing.T) {
	for _, c := range []struct {
		name   string
		begin  func(*way)
		want   State
		within time.Duration
	}{
		{"both ways closed", func(y *way) { y.there, y.back = false, false }, Silent, 4 * time.Second},
		{"closed there", func(y *way) { y.there = false }, OneWay, 5 * time.Second},
		{"closed back", func(y *way) { y.back = false }, Silent, 4 * time.Second},
		{"too narrow", func(y *way) { y.limit = 1300 }, Narrow, 9 * time.Second},
		{"a fifth is lost", func(y *way) { y.lose = 5 }, Lossy, time.Minute},
		{"the device was made again", func(y *way) { y.there, y.back, y.device = false, false, Device{} }, Never, 4 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := open()
			l := newLab(y, open())
			l.pass(t, 5*time.Second, l.is(0, Carrying))
			l.pass(t, 10*time.Second, nil)
			began := l.now
			c.begin(y)
			took := l.pass(t, c.within, l.is(0, c.want))
			t.Logf("found after %s", took)
			if s := l.state(1); s != Carrying {
				t.Errorf("the other peer is %s", s)
			}
			l.pass(t, time.Minute, nil)
			if v := l.w.Verdicts()[addr(0)]; v.State != c.want || v.State.Down() && v.Since.Sub(began) > c.within {
				t.Errorf("after a minute it is %s since %s", v.State, v.Since.Sub(began))
			}
			y.there, y.back, y.limit, y.lose = true, true, 0, 0
			y.device.Handshake = l.now
			if c.want.Down() {
				l.pass(t, 5*time.Second, l.is(0, Returning))
				if d := l.pass(t, 2*hold, l.is(0, Carrying)); d < hold-time.Second {
					t.Errorf("it counts again after %s", d)
				}
			} else if d := l.pass(t, 2*time.Minute, l.is(0, Carrying)); c.want == Narrow && d < (wideAfter-1)*largeAgain {
				t.Errorf("it counts as wide after %s, though a large probe in a row of %d may pass by chance", d, wideAfter)
			}
		})
	}
}

// WireGuard shakes hands before the next probe is answered. That does not make the peer one that
// answers no echo requests, and what was lost while the tunnel was down is no loss of the one that
// carries again.
func TestHandshakeBeforeAnswer(t *testing.T) {
	for _, closed := range []time.Duration{4 * time.Second, 13 * time.Second, 40 * time.Second} {
		y := open()
		l := newLab(y)
		l.pass(t, 10*time.Second, l.is(0, Carrying))
		l.pass(t, 25*time.Second, nil)
		y.there, y.back = false, false
		l.pass(t, closed, nil)
		y.device.Handshake = l.now
		for range 5 {
			l.read()
			if l.step(); !l.state(0).Down() {
				t.Fatalf("closed for %s: with the handshake it is %s", closed, l.state(0))
			}
		}
		y.there, y.back = true, true
		l.pass(t, 5*time.Second, l.is(0, Returning))
		if d := l.pass(t, 2*hold, l.is(0, Carrying)); d < hold-time.Second {
			t.Errorf("closed for %s: it counts again after %s", closed, d)
		}
	}
}

// Probes that are lost before the first handshake are no loss.
func TestNotLossyFromTheStart(t *testing.T) {
	for _, closed := range []time.Duration{5 * time.Second, 9 * time.Second, 15 * time.Second} {
		y := &way{rtt: 20 * time.Millisecond}
		l := newLab(y)
		l.pass(t, closed, nil)
		y.there, y.back, y.device.Handshake = true, true, l.now
		for range 1200 {
			if l.step(); l.state(0) == Lossy {
				t.Fatalf("closed for %s at first: lossy", closed)
			}
		}
	}
}

// A machine that was gone itself is used again as soon as its tunnel carries.
func TestMachineReturns(t *testing.T) {
	y := open()
	l := newLab(y)
	state := func() State { return l.w.Verdicts()[addr(0)].State }
	l.pass(t, 10*time.Second, func() bool { return state() == Carrying })
	for _, gone := range []bool{true, false} {
		y.there, y.back = false, false
		l.pass(t, 10*time.Second, func() bool { return state().Down() })
		l.w.Track(map[netip.Addr]Peer{addr(0): {Traffic: true, Gone: gone, Size: 1420}}, l.now)
		l.pass(t, 5*time.Second, nil)
		l.track() // gossip may hear it again before the tunnel carries
		y.there, y.back = true, true
		want := Returning
		if gone {
			want = Carrying
		}
		l.pass(t, 20*time.Second, func() bool { return !state().Down() })
		if got := state(); got != want {
			t.Errorf("the machine was gone %t: the tunnel is %s, want %s", gone, got, want)
		}
	}
}

// Who comes and goes is used again later than who was down once.
func TestFlapping(t *testing.T) {
	y := open()
	l := newLab(y)
	for _, c := range []struct{ up, want time.Duration }{{time.Minute, hold}, {time.Minute, holdAgain}, {flapping + time.Minute, hold}} {
		l.pass(t, time.Minute, l.is(0, Carrying))
		l.pass(t, c.up, nil)
		y.there, y.back = false, false
		l.pass(t, 10*time.Second, func() bool { return l.w.Verdicts()[addr(0)].State.Down() })
		y.there, y.back = true, true
		l.pass(t, 20*time.Second, l.is(0, Returning))
		if d := l.pass(t, 2*holdAgain, l.is(0, Carrying)); d < c.want-time.Second || d > c.want+time.Second {
			t.Errorf("up for %s before: it carries for %s until it counts, want %s", c.up, d, c.want)
		}
	}
}

func TestNeverShook(t *testing.T) {
	l := newLab(&way{}, open())
	took := l.pass(t, 15*time.Second, l.is(0, Never))
	if took < neverAfter {
		t.Errorf("a new peer had only %s", took)
	}
}

// A peer whose kernel answers no echo requests is not called down while WireGuard receives from it,
// and is when it does not any more.
func TestMutePeer(t *testing.T) {
	y := open()
	y.mute = true
	l := newLab(y)
	for range 3000 {
		if l.step(); l.state(0) != Unknown {
			t.Fatalf("%s after %s", l.state(0), l.now)
		}
	}
	y.there, y.back = false, false
	t.Logf("found after %s", l.pass(t, 30*time.Second, l.is(0, Silent)))
	y.there, y.back = true, true
	l.pass(t, 5*time.Second, l.is(0, Unknown))
}

// A peer that begins to answer no echo requests looks like a one-way tunnel, until the next
// handshake.
func TestPeerBecomesMute(t *testing.T) {
	y := open()
	l := newLab(y)
	l.pass(t, 10*time.Second, nil)
	y.mute = true
	l.pass(t, 5*time.Second, l.is(0, OneWay))
	l.pass(t, sessionAge, l.is(0, Unknown))
	for range 3000 {
		if l.step(); l.state(0) != Unknown {
			t.Fatalf("%s after %s", l.state(0), l.now)
		}
	}
}

// A process that was not scheduled blames no peer.
func TestNotScheduled(t *testing.T) {
	l := newLab(open())
	l.pass(t, 10*time.Second, nil)
	for range 20 {
		for _, d := range l.w.Due(l.now) {
			l.id++
			l.w.Sent(d, l.id, l.now) // and no answer is read
		}
		l.now = l.now.Add(3 * time.Second)
		if l.w.Judge(l.now); l.state(0) != Carrying {
			t.Fatalf("%s", l.state(0))
		}
	}
}

// An answer counts only from the peer that was asked, and with the id.
func TestForgedAnswers(t *testing.T) {
	dead := open()
	l := newLab(dead, open())
	l.pass(t, 10*time.Second, nil)
	dead.there, dead.back = false, false
	l.pass(t, 10*time.Second, func() bool {
		for id := range l.id + 3 {
			l.w.Answered(addr(1), id, l.now) // from the other peer
			l.w.Answered(addr(7), id, l.now) // from no peer
		}
		l.w.Answered(addr(0), 1, l.now)     // an old one
		l.w.Answered(addr(0), 1<<40, l.now) // an invented one
		return l.state(0).Down()
	})
}

// The rate is bounded however many peers there are, and all that fail at once are found.
func TestRate(t *testing.T) {
	for _, n := range []int{100, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var ways []*way
			for range n {
				ways = append(ways, open())
			}
			l := newLab(ways...)
			l.pass(t, 20*time.Second, nil)
			l.sent = 0
			l.pass(t, time.Minute, nil)
			t.Logf("%d peers: %.0f probes in a second", n, float64(l.sent)/60)
			if l.sent > 61*Rate {
				t.Errorf("%d probes in a minute", l.sent)
			}
			ways[7].there, ways[7].back = false, false
			t.Logf("one failed: found after %s", l.pass(t, 6*time.Second, func() bool { return l.state(7).Down() }))
			l.sent = 0
			for _, y := range ways {
				y.there, y.back = false, false
			}
			t.Logf("all failed: found after %s", l.pass(t, 30*time.Second, func() bool {
				for _, v := range l.w.Verdicts() {
					if !v.State.Down() {
						return false
					}
				}
				return true
			}))
			began := l.now
			l.pass(t, time.Minute, nil)
			if rate := float64(l.sent) / (l.now.Sub(began).Seconds() + 30); rate > Rate {
				t.Errorf("%.0f probes in a second while all are down", rate)
			}
		})
	}
}

// Whatever the ways do: a tunnel that is open all the time is never dark, and one that is closed
// for long is.
func TestWhatever(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		y := open()
		y.rtt = time.Duration(rapid.IntRange(1, 600).Draw(r, "rtt")) * time.Millisecond
		other := open()
		l := newLab(y, other)
		for i := range rapid.IntRange(1, 12).Draw(r, "turns") {
			other.there, other.back = rapid.Bool().Draw(r, "there"), rapid.Bool().Draw(r, "back")
			other.mute = rapid.Bool().Draw(r, "mute")
			steps := rapid.IntRange(1, 400).Draw(r, "steps")
			for range steps {
				l.step()
				if s := l.state(0); s.Dark() {
					r.Fatalf("in turn %d, an open tunnel is %s", i, s)
				}
			}
		}
		other.there, other.back = false, false
		for range 300 {
			l.step()
		}
		if s := l.state(1); !s.Down() {
			r.Fatalf("a tunnel that is closed for 30 s is %s", s)
		}
	})
}

// BenchmarkSecond measures what a second of probing costs without the sockets: all peers answer.
func BenchmarkSecond(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var ways []*way
			for range n {
				ways = append(ways, open())
			}
			l := newLab(ways...)
			for range 100 {
				l.step()
			}
			l.sent = 0
			for b.Loop() {
				for range 10 {
					l.step()
				}
			}
			b.ReportMetric(float64(l.sent)/float64(b.N), "probes/s")
		})
	}
}
