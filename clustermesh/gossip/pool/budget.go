package pool

import (
	"time"

	"golang.org/x/time/rate"
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
type budgets struct{ members, strangers *rate.Limiter }

func newBudgets(members, strangers int) budgets {
	return budgets{rate.NewLimiter(rate.Limit(members), members), rate.NewLimiter(rate.Limit(strangers), strangers)}
}

// take takes n from the budget of members or others, and reports whether there was as much.
func (b budgets) take(member bool, n int, now time.Time) bool {
	if member {
		return b.members.AllowN(now, n)
	}
	return b.strangers.AllowN(now, n)
}
