package trust

import (
	"fmt"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// OwnProblems returns what other clusters ignore of this node, and what its own cluster does not state
// of it.
func (s *credentials) OwnProblems() []clustermesh.Problem {
	return slices.Concat(s.ignored, s.withheld)
}

// Problems returns the Problems of nodes and clusters that are believed: keys that two nodes have, UIDs
// that differ, and statements that were not renewed in time, or are to be withdrawn. Each is true now,
// and only now. Alive are the nodes that are heard.
func (s *Store) Problems(alive clustermesh.ByOrigin[bool], records clustermesh.ByOrigin[clustermesh.Record], now time.Time) []clustermesh.Problem {
	return slices.Concat(s.sharedKeys(), s.uids.update(s.pins, s.generation, records), s.late(alive, now), s.unrenewed(now))
}

// KeyRevoked returns a Problem if the key of this machine was revoked.
func (s *credentials) KeyRevoked() (p clustermesh.Problem, revoked bool) {
	if s.pins == nil || !s.Revokes(s.self.Cluster, s.key) {
		return clustermesh.Problem{}, false
	}
	return s.self.Ref().Problem(clustermesh.Problem{
		Code:    problem.KeyRevoked,
		Message: "the key of this machine was revoked, so other nodes refuse its record",
		Try:     "if the machine is in the right hands: stop straitd, delete node.key in its stateDir, and start it (docs/security.md)",
	}), true
}

// maxShared bounds the keys of two nodes that are named, and maxUnrenewed the nodes with a statement to be
// withdrawn.
const (
	maxShared    = 8
	maxUnrenewed = 32
)

// sharedKeys returns a Problem for each node key that two nodes have, as cloned machines do.
func (s *Store) sharedKeys() (out []clustermesh.Problem) {
	for _, k := range s.verified.sharedKeys(s.key) {
		var holders []clustermesh.Origin
		if k == s.key && s.current.Bytes != nil {
			holders = append(holders, s.self)
		}
		for _, o := range s.verified.holders(k) {
			if s.records.Peek(o) != nil && o != s.self {
				holders = append(holders, o)
			}
		}
		for _, o := range holders[min(1, len(holders)):] {
			a := holders[0]
			if a.Compare(o) > 0 {
				a, o = o, a
			}
			out = append(out, o.Ref().Problem(clustermesh.Problem{
				Code:    problem.NodeKeyRepeated,
				Message: fmt.Sprintf("it has the node key of node %s, so each can publish as the other, and to revoke one's key revokes both's", a),
				Try:     "on a cloned machine, stop straitd, remove node.key and wireguard.key from the stateDir, and start it",
			}))
			if len(out) == maxShared {
				return out
			}
		}
	}
	return out
}

// late returns a Problem for each cluster with nodes that are heard and whose statements should have
// been renewed.
func (s *verifier) late(alive clustermesh.ByOrigin[bool], now time.Time) (out []clustermesh.Problem) {
	first, more := map[clustermesh.ClusterName]Signed{}, map[clustermesh.ClusterName]int{}
	for _, o := range s.verified.lateBy(now) {
		if !alive.Get(o) {
			continue
		}
		if _, any := first[o.Cluster]; any {
			more[o.Cluster]++
		} else {
			first[o.Cluster] = s.verified.of[o].Signed
		}
	}
	for c, stated := range first {
		left := time.Unix(stated.NotAfter, 0).Sub(now).Round(time.Minute)
		end := fmt.Sprintf("ends in %s", left)
		if left <= 0 {
			end = fmt.Sprintf("ended %s ago, and what the node published stays in force", -left)
		}
		p := problem.Cluster(string(c)).Problem(clustermesh.Problem{
			Code: problem.StatementLate, Warning: true,
			Message: fmt.Sprintf("the statement about its node %s was not renewed, and %s", stated.Node, end),
			Try:     "look at strait status on that node; and compare the clocks of both machines",
		})
		if n := more[c]; n > 0 {
			p.Message += fmt.Sprintf("; %d more of its nodes are late too", n)
		}
		out = append(out, p)
	}
	return out
}

// unrenewed returns a Problem for each node whose statement this leader withdraws soon, and that has not
// requested another one.
func (s *issuer) unrenewed(now time.Time) (out []clustermesh.Problem) {
	for _, w := range s.withdrawals {
		o := clustermesh.Origin{Cluster: s.self.Cluster, Node: w.Node}
		if w.InForce(now) || s.verified.of[o].Serial >= w.Below || len(out) == maxUnrenewed {
			continue
		}
		out = append(out, o.Ref().Problem(clustermesh.Problem{
			Code: problem.StatementWithdrawn, Warning: true,
			Message: fmt.Sprintf("it publishes under a statement that gives it more than its cluster would state now, and has not requested another one: it is ignored from %s on, until it does", time.Unix(w.From, 0).UTC().Format(time.RFC3339)),
			Try:     "look at the Node and at straitd on that machine; if the machine was taken over, revoke its key (docs/security.md)",
		}))
	}
	return out
}
