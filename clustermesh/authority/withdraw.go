package authority

import (
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
)

// An attacker who took over a node can hide the statement that takes something away from it. A daemon that
// has never seen the node would then accept an older one. So a cluster also publishes from which serial on
// statements are valid: its leader compares the statements in use with what the cluster would sign now, and
// withdraws those that certify more. A withdrawal is announced before it is in force. Its node then asks
// for a new statement at once, so it loses nothing else.

// WithdrawAfter is how long a withdrawal is announced before it comes into force.
const WithdrawAfter = 2 * time.Minute

// Exceeds reports whether a statement certifies anything that another one does not.
func (s Statement) Exceeds(t Statement) bool {
	return s.Key != t.Key || !s.WireGuard.IsZero() && s.WireGuard != t.WireGuard || s.Locality != t.Locality ||
		slices.ContainsFunc(s.Addresses, func(a netip.Addr) bool { return !slices.Contains(t.Addresses, a) }) ||
		slices.ContainsFunc(s.Prefixes, func(p netip.Prefix) bool { return !covers(t.Prefixes, p) })
}

// Lasting returns the statement without the prefixes of single pods, which come and go: some CNIs give each
// pod a prefix of its own.
func (s Statement) Lasting() Statement {
	s.Prefixes = kept(s.Prefixes, func(p netip.Prefix) bool { return !p.IsSingleIP() })
	return s
}

// Standing is what a signer knows about the statement that a node uses.
type Standing struct {
	Shown Statement
	// Exceeds is true if the cluster would no longer sign all of it.
	Exceeds bool
	// Replaced is the first serial after the last earlier statement that exceeds Shown; 0 without one.
	Replaced uint64
}

// Withdraw returns the withdrawals to publish about one node, given those published so far, both in order:
// at most one is in force, and one is announced. So a node cannot make its cluster publish more often than
// that. After is WithdrawAfter, except in tests.
func Withdraw(have []clustermesh.Withdrawal, now Standing, at time.Time, after time.Duration) []clustermesh.Withdrawal {
	pending := slices.IndexFunc(have, func(w clustermesh.Withdrawal) bool { return !w.InForce(at) })
	if pending >= 0 {
		kept := have[max(0, pending-1) : pending+1]
		if w := have[pending]; now.Shown.Serial < w.Below && !now.Exceeds {
			return kept[:len(kept)-1] // the cluster would sign it again
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
	case now.Shown.Serial < counts || now.Shown.Serial >= horizon(at): // it is invalid, or its signer's clock is ahead
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

// unasked returns in how many seconds the node renews its statement in any case. Daemons of the previous
// version ignore announced withdrawals.
func (s Statement) unasked(now time.Time) int64 {
	next := time.Unix(s.NotBefore, 0).Add(Renewal).Sub(now)
	return int64(min(max(next, 0), Renewal) / time.Second)
}

// horizon is the highest serial that a signer with a right clock assigns.
func horizon(now time.Time) uint64 { return uint64(now.Add(MaxAhead).UnixNano()) }

// Below returns the first valid serial for a node at a time, by a sorted list; with announced, the one that
// comes into force next. Withdrawals of a signer whose clock is ahead are ignored: no other signer could
// sign above them.
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
