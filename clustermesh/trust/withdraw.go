package trust

import (
	"errors"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// errWithdrawn means that a cluster does not stand by what it stated of a node before.
var errWithdrawn = errors.New("its cluster has withdrawn that statement")

// reviewed is how many nodes' statements a leader compares each second. Each costs as much as to sign one.
const reviewed = 2

// withdrawn returns what a cluster has withdrawn, by its own record.
func (s *verifier) withdrawn(c clustermesh.ClusterName) []clustermesh.Withdrawal {
	if own := s.records.Peek(clustermesh.Origin{Cluster: c}); own != nil {
		return own.Content.Withdrawn
	}
	return nil
}

// isVoid reports whether a cluster has withdrawn a statement of its own.
func (s *verifier) isVoid(stated authority.Statement, now time.Time) bool {
	return stated.Serial < authority.Below(s.withdrawn(stated.Cluster), stated.Node, now, false)
}

// isRecalled reports whether the statement about this node is withdrawn, or will be soon.
func (s *credentials) isRecalled(now time.Time) bool {
	return s.current.Bytes != nil && s.current.Serial < authority.Below(s.withdrawn(s.self.Cluster), s.self.Node, now, true)
}

// updateVoid reports whether the withdrawals in force changed since it was called last.
func (s *verifier) updateVoid(now time.Time) (changed bool) {
	for c := range s.pins {
		var counts []clustermesh.Withdrawal
		for _, w := range s.withdrawn(c) {
			if w.InForce(now) {
				counts = append(counts, w)
			}
		}
		if !slices.Equal(counts, s.void[c]) {
			s.void[c], changed = counts, true
		}
	}
	return changed
}

// Elected begins a term as the leader, with what the cluster has withdrawn already.
func (s *issuer) Elected() { s.withdrawals = s.withdrawn(s.self.Cluster) }

// Resign ends the term.
func (s *issuer) Resign() { s.withdrawals = nil }

// Withdrawals returns what this node, as the leader, withdraws of its cluster's statements.
func (s *issuer) Withdrawals() []clustermesh.Withdrawal { return s.withdrawals }

// Review brings Withdrawals up to date. It looks at some nodes in each call, and at those that just lost
// something. Own is true if this leader wrote the cluster's record in force.
func (s *issuer) Review(own bool, now time.Time) {
	if !own { // another leader wrote the record in force: nothing that it withdrew comes back
		s.withdrawals = united(s.withdrawals, s.withdrawn(s.self.Cluster))
	}
	if s.pins == nil || s.cfg.Root == nil || s.objects == nil || !s.checks {
		return // nodes are not believed by statements, or it is not known what those should state
	}
	nodes := s.objects.Nodes
	for i := range nodes {
		turn := (i-s.next+len(nodes))%len(nodes) < reviewed
		o := clustermesh.Origin{Cluster: s.self.Cluster, Node: nodes[i].Name}
		if !turn && s.verified.of[o].replaced <= authority.Below(s.withdrawals, o.Node, now, true) {
			continue
		}
		if standing, known := s.standing(o, nodes[i], now); known {
			s.withdrawals = withdraw(s.withdrawals, standing, now, s.cfg.WithdrawAfter)
		}
	}
	if len(nodes) > 0 {
		s.next = (s.next + reviewed) % len(nodes)
	}
	s.withdrawals = s.bounded(s.withdrawals)
}

// standing compares what a node of this cluster shows with what the cluster would state of it now. Known is
// false if there is nothing to compare: no signer signs for a node without an address.
func (s *issuer) standing(o clustermesh.Origin, h authority.Holder, now time.Time) (standing authority.Standing, known bool) {
	v := s.verified.of[o]
	if s.records.Peek(o) == nil || v.Bytes == nil || o == s.self || len(h.Addresses) == 0 {
		return authority.Standing{}, false
	}
	would, _ := authority.Certify(v.Statement, s.Known(v.Statement, *s.objects, now), now)
	would.Locality = v.Locality // a label that changed takes nothing from other nodes
	return authority.Standing{Shown: v.Statement, Exceeds: v.Statement.Exceeds(would), Replaced: v.replaced}, true
}

// withdraw returns a sorted list with the withdrawals of one node as they should be now.
func withdraw(list []clustermesh.Withdrawal, s authority.Standing, now time.Time, after time.Duration) []clustermesh.Withdrawal {
	first, _ := slices.BinarySearchFunc(list, clustermesh.Withdrawal{Node: s.Shown.Node}, clustermesh.Withdrawal.Compare)
	end := first
	for end < len(list) && list[end].Node == s.Shown.Node {
		end++
	}
	next := authority.Withdraw(list[first:end:end], s, now, after)
	if slices.Equal(next, list[first:end]) {
		return list
	}
	return slices.Concat(list[:first], next, list[end:])
}

// united returns all withdrawals of two sorted lists.
func united(a, b []clustermesh.Withdrawal) []clustermesh.Withdrawal {
	if len(a) == 0 {
		return b
	}
	out := slices.Concat(a, b)
	slices.SortFunc(out, clustermesh.Withdrawal.Compare)
	return slices.CompactFunc(out, func(a, b clustermesh.Withdrawal) bool { return a.Compare(b) == 0 })
}

// bounded drops what was withdrawn of nodes that the cluster has no more, once there is too much:
// two for each node of the quota.
func (s *issuer) bounded(list []clustermesh.Withdrawal) []clustermesh.Withdrawal {
	room := 2 * s.pins[s.self.Cluster].Quota.WithDefaults().Nodes
	if len(list) <= room {
		return list
	}
	listed := map[clustermesh.NodeName]bool{}
	for _, h := range s.objects.Nodes {
		listed[h.Name] = true
	}
	list = slices.DeleteFunc(slices.Clone(list), func(w clustermesh.Withdrawal) bool { return !listed[w.Node] })
	return list[:min(len(list), room)]
}
