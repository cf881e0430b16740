package authority

import (
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

// A node that was taken over need not show the statement that takes something away from it, and who has
// never heard of the node would believe an older one. So a cluster also says which serials count: its leader
// compares what it holds with what the cluster would state now, and withdraws what says more. A withdrawal
// is announced before it is in force. A node that reads that asks again at once, so it loses nothing else.

// WithdrawAfter is how long a withdrawal is announced before it comes into force.
const WithdrawAfter = 2 * time.Minute

// Exceeds reports whether a statement gives its node anything that another one does not.
func (s Statement) Exceeds(t Statement) bool {
	return s.Key != t.Key || !s.WireGuard.IsZero() && s.WireGuard != t.WireGuard || s.Locality != t.Locality ||
		slices.ContainsFunc(s.Addresses, func(a netip.Addr) bool { return !slices.Contains(t.Addresses, a) }) ||
		slices.ContainsFunc(s.Prefixes, func(p netip.Prefix) bool { return !covers(t.Prefixes, p) })
}

// Lasting returns the statement without the prefixes of single pods, which come and go: some networks give
// each pod its own.
func (s Statement) Lasting() Statement {
	s.Prefixes = kept(s.Prefixes, func(p netip.Prefix) bool { return !p.IsSingleIP() })
	return s
}

// Standing is what a signer knows of the statement that a node shows.
type Standing struct {
	Shown Statement
	// Exceeds is true if the cluster would not state all of it any more.
	Exceeds bool
	// Replaced is the first serial after an earlier statement that exceeds the one that is shown; 0 if there
	// was none.
	Replaced uint64
}

// Withdraw returns the withdrawals about one node from those that were published, both in order: at most one
// is in force, and one is announced. A node cannot make its cluster say something new more often than that.
// After is WithdrawAfter, except in tests.
func Withdraw(have []clustermesh.Withdrawal, now Standing, at time.Time, after time.Duration) []clustermesh.Withdrawal {
	pending := slices.IndexFunc(have, func(w clustermesh.Withdrawal) bool { return !w.InForce(at) })
	if pending >= 0 {
		kept := have[max(0, pending-1) : pending+1]
		if w := have[pending]; now.Shown.Serial < w.Below && !now.Exceeds {
			return kept[:len(kept)-1] // the cluster states it again
		}
		return kept
	}
	have = have[max(0, len(have)-1):]
	var counts uint64
	if len(have) > 0 {
		counts = have[0].Below
	}
	w := clustermesh.Withdrawal{Node: now.Shown.Node, From: at.Add(after).Unix()}
	switch {
	case now.Shown.Serial < counts || now.Shown.Serial >= horizon(at): // it does not count, or cannot be told
		return have
	case now.Exceeds:
		w.Below = now.Shown.Serial + 1
		w.From += now.Shown.unasked(at)
	default:
		w.Below = now.Replaced
	}
	if w.Below <= counts {
		return have
	}
	return append(slices.Clone(have), w)
}

// unasked returns in how many seconds the node asks again in any case. Daemons of the version before do not
// read that a statement is to be withdrawn.
func (s Statement) unasked(now time.Time) int64 {
	next := time.Unix(s.NotBefore, 0).Add(Renewal).Sub(now)
	return int64(min(max(next, 0), Renewal) / time.Second)
}

// horizon is the highest serial that a signer whose clock is right gives.
func horizon(now time.Time) uint64 { return uint64(now.Add(MaxAhead).UnixNano()) }

// Below returns the first serial about a node that counts at a time, by a sorted list; with announced, that
// which counts next. What a signer whose clock is ahead withdrew is ignored: no other signer could sign above it.
func Below(list []clustermesh.Withdrawal, node clustermesh.NodeName, now time.Time, announced bool) (below uint64) {
	i, _ := slices.BinarySearchFunc(list, clustermesh.Withdrawal{Node: node}, clustermesh.Withdrawal.Compare)
	for _, w := range list[i:] {
		if w.Node != node {
			break
		}
		if (announced || w.InForce(now)) && w.Below <= horizon(now) {
			below = w.Below
		}
	}
	return below
}
