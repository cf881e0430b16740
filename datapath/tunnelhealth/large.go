package tunnelhealth

import "time"

// Large probes find out whether packets pass that are as large as the tunnel's MTU. The answer is
// as large.
const (
	largeFirst = 3 * time.Second
	largeEvery = 15 * time.Second
	// largeAgain is the pause after one that was lost.
	largeAgain = time.Second
	// largePatience is how long one can take.
	largePatience = 1500 * time.Millisecond
	// narrowAfter is how many in a row are lost while small ones are answered.
	narrowAfter = 4
	// wideAfter is how many in a row are answered until a tunnel is no longer narrow, so that traffic does
	// not go back and forth with each of them.
	wideAfter = 3
)

// wantsLarge reports whether to send a large probe too.
func (p *peer) wantsLarge(now time.Time) bool {
	return p.Size > 0 && p.answers && p.large == nil && !p.state.Down() && !now.Before(p.largeDue)
}

// largeAnswered takes that a large probe was answered.
func (p *peer) largeAnswered(now time.Time) {
	p.wide++
	if p.large = nil; p.state == Narrow && p.wide < wideAfter {
		p.largeDue = now.Add(largeAgain)
		return
	}
	p.largeLost, p.wide, p.largeDue = 0, 0, now.Add(largeEvery)
}

// judgeLarge decides about a large probe that is unanswered. It counts only if a small one that was
// sent later is answered: then the tunnel carries.
func (p *peer) judgeLarge(now time.Time) {
	if p.large == nil || now.Sub(p.large.at) < largePatience {
		return
	}
	switch {
	case p.last.After(p.large.at):
		p.largeLost++
		p.wide = 0
		p.large, p.largeDue = nil, now.Add(largeAgain)
		if p.largeLost > narrowAfter {
			p.largeDue = now.Add(largeEvery / 3)
		}
	case now.Sub(p.large.at) > 4*largePatience:
		p.large, p.largeDue = nil, now.Add(largeAgain)
	}
}
