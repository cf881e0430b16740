package tunnelhealth

import "time"

// Large probes find out whether packets pass that are as large as the tunnel's MTU. The answer is
// as large.
const (
	largeFirst = 3 * time.Second
	// largeEvery is the pause between those to one peer; the next goes with the small one after that. With many
	// peers it is longer, so that all together get no more than largeRate in a second.
	largeEvery = 2500 * time.Millisecond
	largeRate  = 50
	// largeSoon is the pause after one that was lost, until narrowAfter were, and largeAgain otherwise: in
	// all, a narrow tunnel is found within 9 s.
	largeSoon  = 300 * time.Millisecond
	largeAgain = time.Second
	// narrowEvery is the pause while a tunnel is narrow.
	narrowEvery = 5 * time.Second
	// largePatience is how long one can take.
	largePatience = 1200 * time.Millisecond
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
	p.largeLost, p.wide, p.largeDue = 0, 0, now.Add(p.largePause)
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
		p.large = nil
		if p.largeLost > narrowAfter {
			p.largeDue = now.Add(narrowEvery)
			return
		}
		// A large probe goes with a small one.
		p.largeDue = now.Add(largeSoon)
		if p.largeDue.Before(p.due) {
			p.due = p.largeDue
		}
	case now.Sub(p.large.at) > 4*largePatience:
		p.large, p.largeDue = nil, now.Add(largeAgain)
	}
}
