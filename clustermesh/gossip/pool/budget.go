package pool

import (
	"sync"
	"time"
)

// How many messages in datagrams are passed to memberlist in a second, and how many datagrams it may
// send, of members and of addresses that are no member's. A daemon in a clusterset of thousands of nodes
// takes some hundred a second, and sends strangers a few: those that have just joined, or that are gone.
// So memberlist cannot be kept busy, nor be used to send much to an address that a message names.
const (
	memberWork   = 20_000
	strangerWork = 2_000
	strangerSent = 200
)

// budgets are what may be done in a second for members, and for all others.
type budgets struct{ members, strangers *budget }

func newBudgets(members, strangers int) budgets {
	return budgets{newBudget(members), newBudget(strangers)}
}

// take takes n from the budget of members or others, and reports whether there was as much.
func (b budgets) take(member bool, n int, now time.Time) bool {
	if member {
		return b.members.take(n, now)
	}
	return b.strangers.take(n, now)
}

// budget is filled again by perSecond in each second, and never holds more.
type budget struct {
	mu        sync.Mutex
	perSecond float64
	left      float64
	at        time.Time
}

func newBudget(perSecond int) *budget {
	return &budget{perSecond: float64(perSecond), left: float64(perSecond)}
}

func (b *budget) take(n int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.left = min(b.perSecond, b.left+b.perSecond*passed)
		b.at = now
	}
	if b.left < float64(n) {
		return false
	}
	b.left -= float64(n)
	return true
}
