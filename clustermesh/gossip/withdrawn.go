package gossip

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
)

// errWithdrawn means that a cluster does not stand by what it stated of a node before.
var errWithdrawn = errors.New("its cluster has withdrawn that statement")

// reviewed is how many nodes' statements a leader compares each second. Each costs as much as to sign one.
const reviewed = 2

// withdrawn returns what a cluster has withdrawn, by its own record.
func (g *guard) withdrawn(c clustermesh.ClusterName) []clustermesh.Withdrawal {
	said, _ := g.held.Record(clustermesh.Origin{Cluster: c})
	return said.Content.Withdrawn
}

// voids reports whether a cluster has withdrawn a statement of its own.
func (g *guard) voids(s authority.Statement, now time.Time) bool {
	return s.Serial < authority.Below(g.withdrawn(s.Cluster), s.Node, now, false)
}

// recalled reports whether the statement about this node is withdrawn, or will be soon.
func (g *guard) recalled(now time.Time) bool {
	return g.stated.signed != nil && g.stated.Serial < authority.Below(g.withdrawn(g.self.Cluster), g.self.Node, now, true)
}

// withdrawals reports whether what counts changed since it was called last: then all records must be judged
// again.
func (g *guard) withdrawals(now time.Time) (news bool) {
	for c := range g.Pins {
		var counts []clustermesh.Withdrawal
		for _, w := range g.withdrawn(c) {
			if w.InForce(now) {
				counts = append(counts, w)
			}
		}
		if !slices.Equal(counts, g.void[c]) {
			g.void[c], news = counts, true
		}
	}
	return news
}

// review brings up to date what this node, as the leader, withdraws of its cluster's statements. It looks at
// some nodes in each call, and at those that just lost something.
func (g *guard) review(own bool, now time.Time) {
	if !own { // another leader wrote the record in force: nothing that it withdrew comes back
		g.recall = united(g.recall, g.withdrawn(g.self.Cluster))
	}
	if g.Pins == nil || g.Root == nil || g.objects == nil || !g.attests {
		return // nodes are not believed by statements, or it is not known what those should say
	}
	nodes := g.objects.Nodes
	for i := range nodes {
		turn := (i-g.next+len(nodes))%len(nodes) < reviewed
		o := clustermesh.Origin{Cluster: g.self.Cluster, Node: nodes[i].Name}
		if !turn && g.proven[o].replaced <= authority.Below(g.recall, o.Node, now, true) {
			continue
		}
		if s, known := g.standing(o, nodes[i], now); known {
			g.recall = withdraw(g.recall, s, now, g.withdrawAfter)
		}
	}
	if len(nodes) > 0 {
		g.next = (g.next + reviewed) % len(nodes)
	}
	g.recall = g.bounded(g.recall)
}

// standing compares what a node of this cluster shows with what the cluster would state of it now. Known is
// false if there is nothing to compare: no signer signs for a node without an address.
func (g *guard) standing(o clustermesh.Origin, h authority.Holder, now time.Time) (s authority.Standing, known bool) {
	p := g.proven[o]
	if _, held := g.held.Record(o); !held || p.signed == nil || o == g.self || len(h.Addresses) == 0 {
		return authority.Standing{}, false
	}
	would, _ := authority.Certify(p.Statement, g.known(p.Statement, *g.objects, now), now)
	would.Locality = p.Locality // a label that changed takes nothing from other nodes
	return authority.Standing{Shown: p.Statement, Exceeds: p.Statement.Exceeds(would), Replaced: p.replaced}, true
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

// bounded drops what was withdrawn of nodes that the cluster has no more, once there is too much: two for each
// node of the quota.
func (g *guard) bounded(list []clustermesh.Withdrawal) []clustermesh.Withdrawal {
	room := 2 * g.Pins[g.self.Cluster].Quota.WithDefaults().Nodes
	if len(list) <= room {
		return list
	}
	listed := map[clustermesh.NodeName]bool{}
	for _, h := range g.objects.Nodes {
		listed[h.Name] = true
	}
	list = slices.DeleteFunc(slices.Clone(list), func(w clustermesh.Withdrawal) bool { return !listed[w.Node] })
	return list[:min(len(list), room)]
}

// withdraw updates what this leader withdraws, and names the nodes that have not asked again yet. The lock is
// held.
func (g *Gossip) withdraw(now time.Time) {
	if !g.leader.is {
		g.guard.recall = nil
		return
	}
	held, _ := g.replica.Record(clustermesh.Origin{Cluster: g.cfg.Self.Cluster})
	g.guard.review(held.Stamp.Epoch == g.leader.epoch(), now)
	for _, w := range g.guard.recall {
		o := clustermesh.Origin{Cluster: g.cfg.Self.Cluster, Node: w.Node}
		if w.InForce(now) || g.guard.proven[o].Serial >= w.Below {
			continue
		}
		if key := "withdrawn " + string(w.Node); g.problems.has(key) || g.problems.count("withdrawn ") < maxClaims {
			g.problem(key, clustermesh.Problem{
				Code: problem.StatementWithdrawn, Object: "node " + o.String(), Warning: true,
				Message: fmt.Sprintf("it says something under a statement that gives it more than its cluster would state now, and has not asked for another one: it is ignored from %s on, until it does", time.Unix(w.From, 0).UTC().Format(time.RFC3339)),
				Try:     "look at the Node and at straitd on that machine; if the machine was taken over, revoke its key (docs/security.md)",
			}, problemLife)
		}
	}
}
