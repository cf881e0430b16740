package tunnelhealth

import (
	"slices"
	"time"
)

// flight is a probe that is not answered yet.
type flight struct {
	id uint64
	at time.Time
}

// peer is what is known of one peer.
type peer struct {
	Peer
	due  time.Time
	open []flight // small probes since the last one that was answered, at most maxOpen
	// first is when the first of them was sent.
	first time.Time
	// answers: its kernel answered, and nothing has proven since that it does not want to.
	answers bool
	last    time.Time // when the last answered probe was sent
	back    time.Time // when an answer came last
	rtt     time.Duration
	results []bool // of the last probes, at most window: answered?

	known  bool // device is
	device Device
	// grew is the last time after which WireGuard certainly received something; counted is since when
	// that is known.
	grew, counted time.Time

	large      *flight
	largeDue   time.Time
	largePause time.Duration
	// largeLost and wide are how many in a row were lost, and answered while the tunnel was narrow.
	largeLost, wide int

	state State
	since time.Time
	// excused: the machine was gone while the tunnel was down, so that is no fault of the tunnel.
	excused bool
	gone    time.Time // when it was gone last
	// returned is when it began to carry again last, and hold is how long it must before it counts.
	returned time.Time
	hold     time.Duration
}

const (
	maxOpen = 64
	window  = 64
)

func (p *peer) set(want Peer, largePause time.Duration) {
	if p.Size != want.Size {
		p.large, p.largeLost, p.wide = nil, 0, 0
	}
	p.Peer, p.largePause = want, largePause
}

func (p *peer) sent(f flight, size int, pause time.Duration) {
	if size > 0 {
		p.large = &f
		return
	}
	if len(p.open) == 0 {
		p.first = f.at
	}
	if p.open = append(p.open, f); len(p.open) > maxOpen {
		p.open = slices.Delete(p.open, 0, 1)
	}
	if p.state.Down() {
		pause = max(downEvery, pause)
	}
	p.due = f.at.Add(pause)
}

func (p *peer) unsent(id uint64) {
	if p.large != nil && p.large.id == id {
		p.large, p.largeDue = nil, p.due
	}
	p.open = slices.DeleteFunc(p.open, func(f flight) bool { return f.id == id })
}

// hurry has a peer probed sooner that owes an answer.
func (p *peer) hurry(now time.Time) {
	if n := len(p.open); n > 0 && !p.state.Down() && p.answers && now.Sub(p.open[0].at) >= urgent {
		if soon := p.open[n-1].at.Add(urgent); soon.Before(p.due) {
			p.due = soon
		}
	}
}

func (p *peer) answered(id uint64, now time.Time) {
	if p.large != nil && p.large.id == id {
		p.largeAnswered(now)
		return
	}
	i := slices.IndexFunc(p.open, func(f flight) bool { return f.id == id })
	if i < 0 {
		return
	}
	if p.state.Down() || !p.answers {
		p.results = nil // what was lost while it carried nothing is no loss
	} else {
		p.results = append(p.results, make([]bool, i)...)
	}
	p.results = append(p.results, true)
	p.results = p.results[max(0, len(p.results)-window):]
	took := now.Sub(p.open[i].at)
	if p.rtt == 0 {
		p.rtt = took
	}
	p.rtt += (took - p.rtt) / 8
	p.last, p.back, p.answers = p.open[i].at, now, true
	if p.open = slices.Delete(p.open, 0, i+1); len(p.open) > 0 {
		p.first = p.open[0].at
	}
}

func (p *peer) read(d Device, known bool, before, now time.Time) {
	switch {
	case !known || !p.known || d.Received < p.device.Received: // the last is a device that was made again
		p.grew, p.counted = time.Time{}, now
	case d.Received > p.device.Received:
		p.grew = before
	}
	p.device, p.known = d, known
}

// void forgets what is unanswered.
func (p *peer) void(now time.Time) {
	p.open, p.large = nil, nil
	p.counted = now
}

// lost reports whether enough probes in a row are unanswered.
func (p *peer) lost(now time.Time) bool {
	return len(p.open) >= lostProbes && now.Sub(p.open[lostProbes-1].at) >= patience && now.Sub(p.first) >= downAfter
}

// look returns what the tunnel does.
func (p *peer) look(now time.Time) State {
	p.hurry(now)
	if p.lost(now) {
		return p.unanswered(now)
	}
	switch {
	case p.state.Down() && p.back.After(p.since) && p.excused:
		return Carrying
	case p.state.Down() && p.back.After(p.since):
		return Returning
	case p.state.Down():
		return p.state
	case p.state == Returning && now.Sub(p.since) < p.hold:
		return Returning
	case !p.answers:
		return Unknown
	case p.largeLost >= narrowAfter:
		return Narrow
	case p.lossy():
		return Lossy
	}
	return Carrying
}

// unanswered returns what it means that probes are not answered.
func (p *peer) unanswered(now time.Time) State {
	waited := now.Sub(p.first)
	switch {
	case p.known && p.device.Handshake.IsZero():
		if p.answers || waited >= neverAfter {
			return Never
		}
		return p.state
	case p.mute(now):
		p.answers = false
	}
	switch {
	case p.answers && p.known && !p.grew.Before(p.first) && now.Sub(p.grew) < oneWayFor:
		return OneWay
	case p.answers:
		return Silent
	case p.known && waited >= muteAfter && now.Sub(p.counted) >= muteAfter && now.Sub(p.grew) >= muteAfter:
		return Silent
	case p.state == Silent && !p.grew.After(p.since):
		return Silent
	}
	return Unknown
}

// mute reports whether the peer answers a handshake and no echo requests: packets pass in both
// directions, and enough probes since then are unanswered.
func (p *peer) mute(now time.Time) bool {
	shook := p.device.Handshake
	if !p.known || !shook.After(p.first.Add(time.Second)) || now.Sub(shook) >= sessionAge {
		return false
	}
	since := 0
	for _, f := range p.open {
		if f.at.After(shook) && now.Sub(f.at) >= patience {
			since++
		}
	}
	return since >= lostProbes
}

// become records a new state. If a tunnel is down for another reason now, it has still been down
// since the first one.
func (p *peer) become(s State, now time.Time) {
	was := p.state
	p.state = s
	if s == Returning {
		if p.hold = hold; !p.returned.IsZero() && now.Sub(p.returned) < flapping {
			p.hold = holdAgain
		}
		p.returned = now
	}
	works := func(s State) bool { return s > Unknown && s < Returning }
	if !(s.Down() && was.Down() || works(s) && works(was)) {
		p.since = now
	}
}

// A tunnel is lossy while a tenth of the last probes is lost, and until a twentieth is. Fewer than
// enough say little.
const (
	enough    = 30
	lossyFrom = 0.1
	lossyTo   = 0.05
)

func (p *peer) lossy() bool {
	if p.state == Lossy {
		return p.loss() > lossyTo
	}
	return len(p.results) >= enough && p.loss() >= lossyFrom
}

func (p *peer) loss() float64 {
	if len(p.results) == 0 {
		return 0
	}
	lost := 0
	for _, answered := range p.results {
		if !answered {
			lost++
		}
	}
	return float64(lost) / float64(len(p.results))
}
