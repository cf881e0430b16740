package gossip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// statement is a signed statement with what it says.
type statement struct {
	authority.Statement
	signed []byte
	// at is when it was put in force about this node, by this machine's clock: that of the signer may
	// differ. It is zero if it comes from an earlier life of the daemon, or is about another node.
	at time.Time
}

// follows reports whether this machine asks others for the statement about itself: it knows who has the
// root, and does not have it now. It then never leads.
func (g *guard) follows() bool { return g.Root == nil && g.signers != nil }

// reroot gives this machine the root, or takes it away. What it stated of itself stays in force, and is
// not asked for while it is what the machine wants.
func (g *guard) reroot(root *authority.PrivateKey) {
	g.Root, g.early = root, nil
	if root == nil && g.stated.signed != nil && g.stated.Fulfils(g.want) {
		g.asked = g.want
	}
}

// wanted is what a statement about this node should say, without times.
func (g *guard) wanted(n *clustermesh.Node) authority.Statement {
	want := authority.Statement{Cluster: g.self.Cluster, Node: g.self.Node, Key: g.Node.Public()}
	if n == nil {
		return want
	}
	want.WireGuard, want.Locality = n.PublicKey, n.Locality
	if proven := want.WithProof(g.Proof); proven.KeyProven {
		want = proven
	}
	want.Addresses = slices.DeleteFunc(slices.Clone(n.Addresses), func(a netip.Addr) bool { return clustermesh.CheckHost(a) != nil })
	want.Addresses = want.Addresses[:min(len(want.Addresses), authority.MaxAddresses)]
	want.Prefixes = slices.DeleteFunc(slices.Clone(n.Prefixes), func(p netip.Prefix) bool { return clustermesh.IsTunnelAddr(p.Addr()) })
	return want
}

// state makes sure that there is a statement about this node that says what n says, as far as its
// cluster knows that to be right, and that is not due to be renewed. It reports whether there is any.
// Without the root it only notes what to ask for.
func (g *guard) state(n *clustermesh.Node, now time.Time) bool {
	g.want = g.wanted(n)
	if g.Root == nil {
		return g.stated.signed != nil
	}
	want, left, known := g.certified(now)
	if !known {
		return g.stated.signed != nil
	}
	g.left = left
	if g.stated.signed != nil && g.stated.Fulfils(want) && !g.due(now) && !g.voided(now) {
		return true
	}
	want = want.Above(g.latest(g.self, now))
	want.Root = g.Root.Public()
	signed, err := want.Sign(*g.Root)
	if err != nil {
		g.log.Error("cannot sign the statement about this node", "error", err)
		return g.stated.signed != nil
	}
	g.stated = statement{want, signed, now}
	return true
}

// latest returns the highest serial that is known of statements about a node.
func (g *guard) latest(o clustermesh.Origin, now time.Time) uint64 {
	latest := max(g.proven[o].Serial, g.proven[o].latest.Serial)
	if o == g.self {
		latest = max(latest, g.stated.Serial, g.former)
	}
	if below := authority.Below(g.withdrawn(o.Cluster), o.Node, now, true); below > 0 {
		latest = max(latest, below-1)
	}
	return latest
}

// voided reports whether others do not believe what this node says under the statement about it, because they
// know a later one: another daemon with this name has it. Or its cluster withdraws it.
func (g *guard) voided(now time.Time) bool {
	return g.stated.signed != nil && g.stated.Older(g.proven[g.self].latest, now) || g.recalled(now)
}

// due reports whether this machine should sign the statement about itself again: it is old, or was signed
// by another root.
func (g *guard) due(now time.Time) bool {
	return g.Root != nil && g.stated.signed != nil && (g.old(now, authority.Renewal) || g.stated.Root != g.Root.Public())
}

func (g *guard) old(now time.Time, limit time.Duration) bool {
	age := now.Round(0).Sub(g.stated.at.Round(0)) // not by the monotonic clock, which stops while a machine sleeps
	return age > limit || age < -time.Minute
}

// How often a machine without the root asks again for a statement that could be better. It is rotating
// while the cluster has two roots and the former one signed the statement, or while others do not believe
// it. It is lacking if the statement lacks something: the signer may know more of the node meanwhile, or
// its clock may be right meanwhile, or it may know proofs of WireGuard keys, which the version before does not.
const (
	rotating = 5 * time.Second
	lacking  = 30 * time.Second
)

// asks reports whether this machine should ask for a statement about itself.
func (g *guard) asks(now time.Time) bool {
	if !g.follows() || g.want.Node == "" {
		return false // nothing was published yet
	}
	limit := authority.Renewal
	roots := g.signers[g.self.Cluster].Roots
	switch {
	case g.stated.signed == nil || !g.asked.SaysAs(g.want):
		return true
	case len(roots) > 0 && g.stated.Root != roots[len(roots)-1]:
		limit = rotating
	case g.voided(now), g.stated.Age(now) == authority.Early:
		limit = rotating
	case !g.stated.Fulfils(g.want), g.stated.at.Sub(time.Unix(g.stated.NotBefore, 0)).Abs() > maxAhead:
		limit = lacking
	}
	return g.old(now, limit)
}

// Errors of better: a signer's clock is wrong.
var (
	errSignerAhead  = errors.New("it signs for the future; correct the clock that is wrong")
	errSignerBehind = errors.New("what it signs is older than the statement in force, and says something else; correct its clock")
)

// better returns an error if the statement in force about this node is better than another one, which
// others would not believe. It is none if the one in force has ended or has not begun.
func (g *guard) better(s authority.Statement, now time.Time) error {
	have := g.stated
	if age := have.Age(now); have.signed == nil || age == authority.Early || age == authority.Expired {
		return nil
	}
	switch {
	case s.Age(now) == authority.Early:
		return errSignerAhead
	case s.Older(have.Statement, now):
		return errSignerBehind
	}
	return nil
}

// restore takes the statement that was saved, if it is about this node and its key.
func (g *guard) restore(signed []byte) {
	s, err := authority.OpenStatement(signed, g.signers)
	if err == nil && g.follows() && s.Origin() == g.self && s.Key == g.Node.Public() && s.Serial >= g.stated.Serial {
		g.stated = statement{Statement: s, signed: signed}
	}
}

// restoreSealed takes the statement in the seal of this node's own record, as it was saved. A machine
// that had the root in its last life has saved no other.
func (g *guard) restoreSealed(e replica.Entry) {
	raw, err := e.Bytes()
	if err != nil {
		return
	}
	var signed []byte
	s, err := authority.Verify(g.signers, g.self, raw, e.Seal(), func(b []byte) (authority.Statement, error) {
		signed = b
		return authority.OpenStatement(b, g.signers)
	})
	if err == nil {
		g.former = s.Serial
		g.restore(signed)
	}
}

// maxTwins is how many keys of two nodes are named.
const maxTwins = 8

// twins returns a Problem for each node key that two nodes have, as cloned machines do.
func (g *guard) twins() (out []clustermesh.Problem) {
	first := map[authority.PublicKey]clustermesh.Origin{}
	if g.stated.signed != nil {
		first[g.Node.Public()] = g.self
	}
	for o, p := range g.proven {
		if _, known := g.held.Record(o); !known || p.signed == nil || o == g.self {
			continue
		}
		a, taken := first[p.Key]
		if !taken {
			first[p.Key] = o
			continue
		}
		if a.Compare(o) > 0 {
			a, o = o, a
		}
		if out = append(out, clustermesh.Problem{
			Code: problem.NodeKeyRepeated, Object: "node " + o.String(),
			Message: fmt.Sprintf("it has the node key of node %s, so each can speak for the other, and to revoke one's key revokes both's", a),
			Try:     "on a cloned machine, stop straitd, remove node.key and wireguard.key from the stateDir, and start it",
		}); len(out) == maxTwins {
			break
		}
	}
	return out
}

// late returns a Problem for each cluster with nodes that are heard and whose statements should have
// been renewed.
func (g *guard) late(alive []clustermesh.Origin, now time.Time) (out []clustermesh.Problem) {
	first, more := map[clustermesh.ClusterName]statement{}, map[clustermesh.ClusterName]int{}
	for _, o := range alive {
		if p, known := g.proven[o]; known && p.Age(now) >= authority.Late {
			if _, any := first[o.Cluster]; any {
				more[o.Cluster]++
			} else {
				first[o.Cluster] = p.statement
			}
		}
	}
	for c, s := range first {
		left := time.Unix(s.NotAfter, 0).Sub(now).Round(time.Minute)
		said := fmt.Sprintf("ends in %s", left)
		if left <= 0 {
			said = fmt.Sprintf("ended %s ago, and what the node said stays in force", -left)
		}
		p := clustermesh.Problem{
			Code: problem.StatementLate, Object: "cluster " + string(c), Warning: true,
			Message: fmt.Sprintf("the statement about its node %s was not renewed, and %s", s.Node, said),
			Try:     "look at strait status on that node; and compare the clocks of both machines",
		}
		if n := more[c]; n > 0 {
			p.Message += fmt.Sprintf("; %d more of its nodes are late too", n)
		}
		out = append(out, p)
	}
	return out
}
