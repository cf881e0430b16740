// Package tunnelhealth decides from probes whether the tunnels of one node carry packets.
//
// Inputs are the peers, when each was sent an echo request inside the tunnel and when it answered, what
// WireGuard counts, and the time. Outputs are whom to probe now, and a Verdict on each peer. Pure. It must
// not know sockets, clusters, or what follows from a verdict.
//
// An echo request is answered by the kernel of the peer, so that a daemon that is down or is being
// upgraded changes nothing. A machine can be configured to answer none, so silence alone proves nothing about a
// peer that never answered. Then WireGuard is the witness: a peer that gets packets sends at least a
// keepalive within 10 s, and a handshake takes an answer (https://www.wireguard.com/papers/wireguard.pdf,
// section 6). Unknown is not bad.
package tunnelhealth

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// State is what a tunnel does with packets.
type State uint8

// The states, from what is best to know.
const (
	// Unknown: the peer was not probed for long enough, or its kernel answers no echo requests.
	Unknown State = iota
	Carrying
	// Lossy: some of the packets are lost.
	Lossy
	// Narrow: small packets are answered, and those as large as the tunnel's MTU are not.
	Narrow
	// Returning: it carries packets, and lately carried none.
	Returning
	// OneWay: packets come from the peer, and none arrives there.
	OneWay
	// Silent: nothing comes from the peer.
	Silent
	// Never: no handshake was ever answered.
	Never
)

var names = [...]string{"unknown", "carrying", "lossy", "narrow", "returning", "one-way", "silent", "never"}

func (s State) String() string { return names[s] }

// Names returns the names of all states.
func Names() []string { return names[:] }

// Down reports whether the tunnel carries nothing.
func (s State) Down() bool { return s > Returning }

// Dark reports whether other ways are to be preferred to the tunnel.
func (s State) Dark() bool { return s >= Returning }

// Timing.
const (
	// every is the pause between probes of a peer to which traffic can go, and idleEvery of others.
	// With many peers it is longer, so that all together get no more than Rate and idleRate.
	every     = time.Second
	idleEvery = 5 * time.Second
	// Rate is how many probes are sent in a second at most, and idleRate how many of them to peers
	// without traffic. It bounds how soon the last of many that fail at once is found: each takes
	// lostProbes, so a thousand take 6 s at least, and 10 s as they are spread over time.
	Rate     = 500
	idleRate = 100
	// urgent is the pause once a probe is unanswered for urgent.
	urgent = 500 * time.Millisecond
	// downEvery is the pause while a peer is down.
	downEvery = time.Second
	// A tunnel is down when lostProbes in a row are unanswered, each for at least patience, and the
	// first of them for downAfter.
	lostProbes = 3
	patience   = 700 * time.Millisecond
	downAfter  = 2500 * time.Millisecond
	// neverAfter is how long a new peer has for its first handshake: WireGuard tries again after 5 s.
	neverAfter = 10 * time.Second
	// muteAfter is how long WireGuard must have received nothing from a peer that never answered a
	// probe. Its own limit is 15 s.
	muteAfter = 20 * time.Second
	// oneWayFor is how long ago WireGuard can have received something from a peer that is heard.
	oneWayFor = 30 * time.Second
	// hold is how long a tunnel that was down must carry before it counts as whole, and holdAgain if
	// it came back less than flapping before that already.
	hold      = 10 * time.Second
	holdAgain = time.Minute
	flapping  = 10 * time.Minute
	// late is how long the last look can be ago. If it was longer, this process was not scheduled, and
	// unanswered probes mean nothing.
	late = 1500 * time.Millisecond
	// sessionAge is how old a session can be (REJECT_AFTER_TIME).
	sessionAge = 3 * time.Minute
)

// Peer is whom to probe, and how.
type Peer struct {
	// Traffic: there are endpoints behind the peer.
	Traffic bool
	// Gone: the peer's machine does not answer outside the tunnel either.
	Gone bool
	// Size is that of the largest packet that the tunnel to the peer takes, in bytes; 0 if unknown.
	Size int
}

// Device is WireGuard's state of a peer.
type Device struct {
	// Handshake is the time of the last one that was answered; zero if none was.
	Handshake time.Time
	// Received counts bytes.
	Received int64
}

// Verdict is what is known of a tunnel.
type Verdict struct {
	State State
	// Since is when the tunnel began to be up, down or returning, as far as this node saw it.
	Since time.Time
	// Gone is when the peer's machine was gone last; zero if it never was.
	Gone time.Time
	// RTT is the round-trip time inside the tunnel, smoothed; 0 if unknown.
	RTT time.Duration
	// Loss is which part of the last probes was lost, 0 to 1.
	Loss float64
	// Size is that of the packets that Narrow is about, in bytes.
	Size int
	// Handshake is that of Device.
	Handshake time.Time
}

// Probe is one to send now.
type Probe struct {
	To netip.Addr
	// Size is that of the whole packet; 0 is the smallest.
	Size int
}

// Watch follows the peers of one node, each by its address inside the tunnel. It is not safe for
// concurrent use.
type Watch struct {
	peers   map[netip.Addr]*peer
	looked  time.Time // when Judge was last called
	asked   time.Time // when Read was last called
	spent   float64   // of Rate
	spentAt time.Time
	// pause is that between probes of peers with traffic, and idle that of others.
	pause, idle time.Duration
}

// New returns a Watch without peers.
func New() *Watch { return &Watch{peers: map[netip.Addr]*peer{}} }

// Track sets the peers.
func (w *Watch) Track(want map[netip.Addr]Peer, now time.Time) {
	for a := range w.peers {
		if _, is := want[a]; !is {
			delete(w.peers, a)
		}
	}
	w.pause, w.idle = pauses(want)
	large := max(largeEvery, spread(len(want), largeRate))
	for a, p := range want {
		if w.peers[a] == nil {
			w.peers[a] = &peer{due: now, largeDue: now.Add(largeFirst)}
		}
		w.peers[a].set(p, large)
	}
}

// Due returns the probes to send now. They are as many as Rate leaves room for, the most overdue
// first. Each is due again unless Sent is called.
func (w *Watch) Due(now time.Time) (out []Probe) {
	w.spent = max(0, w.spent-Rate*now.Sub(w.spentAt).Seconds())
	w.spentAt = now
	var due []netip.Addr
	for a, p := range w.peers {
		if !now.Before(p.due) {
			due = append(due, a)
		}
	}
	slices.SortFunc(due, func(a, b netip.Addr) int {
		return cmp.Or(w.peers[a].due.Compare(w.peers[b].due), a.Compare(b))
	})
	for _, a := range due {
		if w.spent >= Rate/10 {
			break // what is left comes in a moment
		}
		w.spent++
		out = append(out, Probe{To: a})
		if p := w.peers[a]; p.wantsLarge(now) {
			w.spent++
			out = append(out, Probe{a, p.Size})
		}
	}
	return out
}

// Sent records that a probe was sent, with an id that others cannot guess.
func (w *Watch) Sent(probe Probe, id uint64, now time.Time) {
	if p := w.peers[probe.To]; p != nil {
		pause := w.idle
		if p.Traffic {
			pause = w.pause
		}
		p.sent(flight{id, now}, probe.Size, pause)
	}
}

// Unsent takes Sent back: the probe could not be sent, for a reason that is no sign about the
// peer.
func (w *Watch) Unsent(to netip.Addr, id uint64) {
	if p := w.peers[to]; p != nil {
		p.unsent(id)
	}
}

// pauses returns how often to probe peers with traffic, and others.
func pauses(peers map[netip.Addr]Peer) (traffic, idle time.Duration) {
	busy := 0
	for _, p := range peers {
		if p.Traffic {
			busy++
		}
	}
	return max(every, spread(busy, Rate-idleRate)), max(idleEvery, spread(len(peers)-busy, idleRate))
}

// spread returns the pause between probes of each of n peers, if there are rate of them in a second.
func spread(n, rate int) time.Duration { return time.Duration(n) * time.Second / time.Duration(rate) }

// Answered notes an answer. One with an id that is not expected from there changes nothing.
func (w *Watch) Answered(from netip.Addr, id uint64, now time.Time) {
	if p := w.peers[from]; p != nil {
		p.answered(id, now)
	}
}

// Waits reports whether some peer owes an answer, so that WireGuard's state of it counts.
func (w *Watch) Waits(now time.Time) bool {
	for _, p := range w.peers {
		if len(p.open) > 0 && now.Sub(p.open[0].at) > patience {
			return true
		}
	}
	return false
}

// Read notes WireGuard's present state of the peers. A peer that is not there is unknown.
func (w *Watch) Read(devices map[netip.Addr]Device, now time.Time) {
	for a, p := range w.peers {
		d, known := devices[a]
		p.read(d, known, w.asked, now)
	}
	w.asked = now
}

// Judge decides again, and reports whether a verdict is another one: its state or its time.
func (w *Watch) Judge(now time.Time) (changed bool) {
	blind := now.Sub(w.looked) > late
	w.looked = now
	for _, p := range w.peers {
		if blind {
			p.void(now)
		}
		p.judgeLarge(now)
		if s := p.look(now); s != p.state {
			p.become(s, now)
			changed = true
		}
		p.excused = p.state.Down() && (p.excused || p.Gone)
		if p.Gone {
			p.gone = now
		}
	}
	return changed
}

// Verdicts returns those on all peers.
func (w *Watch) Verdicts() map[netip.Addr]Verdict {
	out := make(map[netip.Addr]Verdict, len(w.peers))
	for a, p := range w.peers {
		out[a] = Verdict{State: p.state, Since: p.since, Gone: p.gone, RTT: p.rtt, Loss: p.loss(), Size: p.Size, Handshake: p.device.Handshake}
	}
	return out
}
