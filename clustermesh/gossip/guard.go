package gossip

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/problem"
)

// Authority says with which keys this node signs, and whom it believes.
type Authority struct {
	// Root is the key of this node's cluster; nil on a machine that does not have it. See Reroot. Node
	// is the machine's own key.
	Root *authority.PrivateKey
	Node authority.PrivateKey
	// Proof shows that this machine has the private key of its tunnels, see authority.ProveKey; zero if it has
	// no tunnels.
	Proof key.Signature
	// Pins are the clusters that are believed. Nil believes everybody who has the gossip key.
	Pins authority.Pins
	// Lax believes everybody all the same: the pins only say who can sign for this machine. So all
	// machines of a clusterset can sign before any refuses what is not signed.
	Lax bool
	// Ranges are what no other cluster can have, besides the pinned ranges of this cluster: those of
	// its Services and ClusterSetIPs.
	Ranges []netip.Prefix
	// ConfigFrom are the clusters whose configuration this cluster accepts.
	ConfigFrom []clustermesh.ClusterName
}

// guard signs what this node writes, and judges what others wrote. Gossip's lock is held for all of
// its methods.
type guard struct {
	Authority // its Pins are nil with Lax
	// signers are the pins by which this machine knows who can sign for it.
	signers authority.Pins
	self    clustermesh.Origin
	log     *slog.Logger
	// stated is the statement about this node; want is what it should say, and asked what it was asked
	// to say. Own is what other clusters leave out of its record.
	stated      statement
	want, asked authority.Statement
	own         []clustermesh.Problem
	early       []byte // the statement to show before there is another one; see shown
	former      uint64 // the serial of the statement in an earlier life
	// generation counts the changes of the pins, and impostors the peers that did not prove who they are.
	generation, impostors uint64
	// proven is what was verified last of each origin, so that nothing is verified twice, and no older
	// statement comes back. It has at most maxProven elements, or as many as records are held.
	proven map[clustermesh.Origin]proof
	// attests is true if objects tell what to state; objects are nil while they are unknown. Granted is what
	// this machine signed last for each node that asked. Left is what was not stated of this node, and why.
	attests bool
	objects *authority.Objects
	granted map[clustermesh.Origin]authority.Statement
	left    []clustermesh.Problem
	// machines are the addresses of this cluster's nodes, by their statements. They are no other
	// cluster's endpoints, so what was admitted must be judged again when that changes: then news is true.
	machines map[netip.Addr]bool
	news     bool
	// receiver is what Admit knows of this cluster: its pinned pods, Ranges and machines, and what its
	// namespaces accept.
	receiver authority.Self
	accept   clustermesh.Accept
	local    clustermesh.LocalNamespaces
	// joined says when the pinned clusters joined; it is never changed.
	joined map[clustermesh.ClusterName]int64
	// quotas say how many exports of the pinned clusters become imports; it is never changed.
	quotas map[clustermesh.ClusterName]int
	// gone are the revoked keys when the records were judged last, by cluster.
	gone map[clustermesh.ClusterName][]string
	// void is what was withdrawn then. Recall is what this node withdraws as the leader, and next the first of
	// the cluster's nodes to review.
	void          map[clustermesh.ClusterName][]clustermesh.Withdrawal
	recall        []clustermesh.Withdrawal
	next          int
	withdrawAfter time.Duration // authority.WithdrawAfter, except in tests
	refused       map[refusal]example
	// held is what counts when records of more nodes or clusters arrive.
	held held
	// counts are the records refused, by reason.
	counts map[string]uint64
}

// held says what is held already.
type held interface {
	Record(clustermesh.Origin) (clustermesh.Record, bool)
	Count(clustermesh.ClusterName) (replica.Count, int)
}

// nothing is held while a replica is made.
type nothing struct{}

func (nothing) Record(clustermesh.Origin) (clustermesh.Record, bool) {
	return clustermesh.Record{}, false
}
func (nothing) Count(clustermesh.ClusterName) (replica.Count, int) { return replica.Count{}, 0 }

// proof is a record that was verified: the checksum of its bytes and its seal. It has no statement if
// it is a cluster's.
type proof struct {
	statement
	sum [sha256.Size]byte
	// latest is the statement about the node that makes older ones void.
	latest authority.Statement
	// replaced is the first serial after an earlier statement that gave the node more, besides single pods; 0 if
	// there was none.
	replaced uint64
}

const exampleLife = 10 * problemLife

// maxProven bounds what is remembered as verified.
const maxProven = 1 << 16

// refusal is a reason to refuse records of a cluster.
type refusal struct {
	cluster clustermesh.ClusterName
	reason  error
}

// example is one record that was refused. People see one for each refusal, and the same one for
// exampleLife.
type example struct {
	record, by clustermesh.Origin
	since      time.Time
}

func newGuard(a *Authority, self clustermesh.Origin, log *slog.Logger) *guard {
	g := &guard{
		self: self, log: log, proven: map[clustermesh.Origin]proof{}, machines: map[netip.Addr]bool{},
		refused: map[refusal]example{}, counts: map[string]uint64{},
		void: map[clustermesh.ClusterName][]clustermesh.Withdrawal{}, withdrawAfter: authority.WithdrawAfter,
		held: nothing{}, gone: map[clustermesh.ClusterName][]string{}, granted: map[clustermesh.Origin]authority.Statement{},
	}
	if a != nil {
		g.Authority = *a
		g.pin(a.Pins)
	}
	g.receive()
	return g
}

// pin puts pins in force.
func (g *guard) pin(pins authority.Pins) {
	g.signers, g.Pins = pins, pins
	if g.Lax {
		g.Pins = nil
	}
}

// receive brings receiver up to date.
func (g *guard) receive() {
	g.receiver = authority.Self{Cluster: g.self.Cluster, Own: slices.Concat(g.Pins[g.self.Cluster].Pods, g.Ranges), Machines: g.machines, Accept: g.accept, LocalNamespaces: g.local, ConfigFrom: g.ConfigFrom}
	g.joined, g.quotas = map[clustermesh.ClusterName]int64{}, map[clustermesh.ClusterName]int{}
	for c, p := range g.Pins {
		g.quotas[c] = p.Quota.WithDefaults().Exports
		if !p.Joined.IsZero() {
			g.joined[c] = p.Joined.Unix()
		}
	}
}

// repin replaces the pins. What was verified with the former ones is forgotten.
func (g *guard) repin(pins authority.Pins) {
	g.pin(pins)
	g.generation++
	g.asked = authority.Statement{} // the root may be another one
	clear(g.proven)
	clear(g.refused)
	clear(g.machines)
	g.receive()
}

// seal is replica.Config.Seal.
func (g *guard) seal(e replica.Entry) []byte {
	raw, err := e.Bytes()
	if err != nil {
		g.log.Error("cannot encode a record to sign it", "record", e.Record.Origin, "error", err)
		return nil
	}
	if e.Record.Origin.Node == "" {
		delete(g.proven, e.Record.Origin) // what this node writes itself needs no proof
		if g.Root == nil {
			return nil
		}
		return authority.Seal(*g.Root, raw, nil)
	}
	if !g.state(e.Record.Content.Node, time.Now()) {
		return nil
	}
	g.own = g.leftOut(e.Record)
	return authority.Seal(g.Node, raw, g.stated.signed)
}

// ownRecord is replica.Config.Own: whether this node proves its WireGuard key is known before any statement says so.
func (g *guard) ownRecord(r clustermesh.Record) clustermesh.Record {
	r.KeyProven = g.Pins != nil && g.want.KeyProven && r.Content.Node != nil && r.Content.Node.PublicKey == g.want.WireGuard
	return r
}

// leftOut returns what other clusters leave out of this node's record, if they pinned the ranges that
// this cluster says it has.
func (g *guard) leftOut(r clustermesh.Record) []clustermesh.Problem {
	pin, pinned := g.Pins[g.self.Cluster]
	if !pinned || len(pin.Pods) == 0 {
		return nil
	}
	pin.Namespaces = []string{"*"}
	r.Problems = nil
	out := authority.Admit(authority.Self{}, pin, g.stated.Statement, r).Problems
	for i := range out {
		out[i].Message += " by other clusters"
	}
	return out
}

// judge returns the part of a record that its origin may say, see replica.Config.Admit.
func (g *guard) judge(by replica.Peer, e replica.Entry, now time.Time) (clustermesh.Record, clustermesh.Problem, bool) {
	o := e.Record.Origin
	if g.Pins == nil {
		if err := g.room(o); err != nil {
			return clustermesh.Record{}, g.refuse(o, by, err, now), false
		}
		return authority.AdmitUnpinned(g.receiver, e.Record), clustermesh.Problem{}, true
	}
	held := by == (replica.Peer{})
	s, err := g.verify(e, held, now)
	if errors.Is(err, errEarly) && held {
		// It was believed before, so this machine's clock was set back. What is held stays.
		err = nil
	}
	if err == nil && o.Node != "" && g.revokes(o.Cluster, s.Key) {
		err = errRevoked
		delete(g.proven, o)
	}
	if err != nil {
		return clustermesh.Record{}, g.refuse(o, by, err, now), false
	}
	if err := g.room(o); err != nil {
		return clustermesh.Record{}, g.refuse(o, by, err, now), false
	}
	return authority.Admit(g.receiver, g.Pins[o.Cluster], s, e.Record), clustermesh.Problem{}, true
}

func (g *guard) pinned(c clustermesh.ClusterName) bool {
	_, pinned := g.Pins[c]
	return pinned
}

// maxClusters bounds the clusters that are believed without pins: whoever has the gossip key can
// invent some.
const maxClusters = 500

// room returns an error if another record of an origin would be one too many.
func (g *guard) room(o clustermesh.Origin) error {
	if _, known := g.held.Record(o); known {
		return nil
	}
	has, clusters := g.held.Count(o.Cluster)
	switch {
	case o.Node != "" && has.Nodes >= g.Pins[o.Cluster].Quota.WithDefaults().Nodes:
		return errCrowd
	case g.Pins == nil && has.Records == 0 && clusters >= maxClusters:
		return errClusters
	}
	return nil
}

// Errors of room: a cluster has more nodes than its pin allows, or there are too many clusters.
var (
	errCrowd    = errors.New("it has as many nodes already as its quota allows")
	errClusters = fmt.Errorf("there are %d clusters already", maxClusters)
)

// Errors of verify: a statement begins in the future, or its cluster has stated something else since.
var (
	errEarly = errors.New("its statement is from the future")
	errOlder = errors.New("its cluster has stated something else of it since")
)

func (g *guard) verify(e replica.Entry, held bool, now time.Time) (authority.Statement, error) {
	o := e.Record.Origin
	raw, err := e.Bytes()
	if err != nil {
		return authority.Statement{}, err
	}
	sum := sha256.Sum256(slices.Concat(e.Seal(), raw))
	known, any := g.proven[o]
	if any && known.sum == sum {
		if o.Node != "" && g.voids(known.Statement, now) {
			return known.Statement, errWithdrawn
		}
		return known.Statement, nil
	}
	signed := known.signed
	s, err := authority.Verify(g.Pins, o, raw, e.Seal(), func(b []byte) (authority.Statement, error) {
		if known.signed != nil && bytes.Equal(known.signed, b) {
			return known.Statement, nil
		}
		signed = b
		return authority.OpenStatement(b, g.Pins)
	})
	switch {
	case err != nil:
		return s, err
	case o.Node != "" && s.Age(now) == authority.Early:
		return s, errEarly
	case o.Node != "" && g.voids(s, now):
		return s, errWithdrawn
	case !held && s.Older(known.latest, now):
		return s, errOlder
	}
	g.bound()
	next := proof{statement{Statement: s, signed: signed}, sum, s.Latest(known.latest, now), known.replaced}
	if known.latest.Older(s, now) && known.latest.Lasting().Exceeds(s) {
		next.replaced = known.latest.Serial + 1
	}
	g.proven[o] = next
	g.claim(s)
	return s, nil
}

// bound makes room in proven. What is known of a node whose record is held is not forgotten.
func (g *guard) bound() {
	if len(g.proven) < maxProven {
		return
	}
	maps.DeleteFunc(g.proven, func(o clustermesh.Origin, _ proof) bool {
		_, known := g.held.Record(o)
		return !known
	})
}

// refuse counts a refused record, and returns the Problem, which is the same for all records of a
// cluster that are refused for one reason.
func (g *guard) refuse(o clustermesh.Origin, by replica.Peer, cause error, now time.Time) clustermesh.Problem {
	if by == (replica.Peer{}) { // held already
		by = o
	}
	for _, known := range reasons {
		if !errors.Is(cause, known.reason) {
			continue
		}
		g.counts[known.name]++
		p := known.problem
		key := refusal{o.Cluster, known.reason}
		p.Object = "cluster " + string(o.Cluster)
		if known.reason == errClusters { // one Problem for all that are invented
			key.cluster, p.Object = "", "clusterset"
		}
		x, shown := g.refused[key]
		if !shown || now.Sub(x.since) > exampleLife {
			x = example{o, by, now}
			g.forget(now)
			if len(g.refused) < maxRefused {
				g.refused[key] = x
			}
		}
		p.Message = fmt.Sprintf("%s: %v, so it is ignored (for example the record of %s, received from %s)", p.Message, known.reason, x.record, x.by)
		return p
	}
	g.counts["unreadable"]++
	return clustermesh.Problem{
		Code: problem.RecordRejected, Object: "record " + o.String(),
		Message: fmt.Sprintf("ignored, what it said before stays in force: %v (received from %s)", cause, by),
		Try:     "upgrade the older daemon if the versions differ; otherwise somebody who has the gossip key forges records",
	}
}

// maxRefused bounds the examples: whoever has the gossip key can invent clusters.
const maxRefused = 256

// forget drops examples that nobody sees any more.
func (g *guard) forget(now time.Time) {
	maps.DeleteFunc(g.refused, func(_ refusal, x example) bool { return now.Sub(x.since) > exampleLife })
}

// reasons are those to refuse a whole record, each with the name that it is counted by.
var reasons = []struct {
	reason  error
	name    string
	problem clustermesh.Problem
}{
	{authority.ErrNotPinned, "not_pinned", clustermesh.Problem{
		Code: problem.ClusterNotPinned, Message: "it says something here",
		Try: "if it should be a member, pin it (strait clusterset accept); otherwise find out who gave it the gossip key",
	}},
	{authority.ErrUnsealed, "unsigned", clustermesh.Problem{
		Code: problem.RecordUnsigned, Message: "a record came without a signature",
		Try: "upgrade its daemons and set authority.rootFile there; if that is done, somebody who has the gossip key forges records",
	}},
	{authority.ErrNotSigned, "other_root", clustermesh.Problem{
		Code: problem.RootDiffers, Message: "a record came with the signature of another root than is pinned",
		Try: "if the cluster got a new root, pin that (strait clusterset accept); otherwise somebody who has the gossip key forges records",
	}},
	{authority.ErrForged, "forged", clustermesh.Problem{
		Code: problem.RecordForged, Message: "a record came with a signature of somebody else",
		Try: "somebody who has the gossip key, or a node that was taken over, forges records: find the sender",
	}},
	{errCrowd, "crowd", clustermesh.Problem{
		Code: problem.OutsideAuthority, Message: "another node says something",
		Try: "if it has so many nodes, pin it, with a higher quota.nodes (authority.pinsFile)",
	}},
	{errClusters, "clusters", clustermesh.Problem{
		Code: problem.OutsideAuthority, Message: "another cluster says something",
		Try: "if somebody who has the gossip key invents clusters, pin those that are members (docs/security.md)",
	}},
	{errRevoked, "revoked", clustermesh.Problem{
		Code: problem.KeyRevoked, Message: "a node says something with a key that its cluster revoked",
		Try: "nothing to do while the machine is not in the right hands again; then give it a new key (docs/security.md)",
	}},
	{errOlder, "older", clustermesh.Problem{
		Code: problem.StatementOlder, Message: "a node brings back what its cluster stated of it before",
		Try: "nothing to do if the machine was restored from a snapshot: it gets a new statement within seconds; otherwise the machine was taken over: revoke its key (docs/security.md)",
	}},
	{errWithdrawn, "withdrawn", clustermesh.Problem{
		Code: problem.StatementWithdrawn, Message: "a node says something under a statement that its cluster has withdrawn",
		Try: "nothing to do if its record comes within seconds: it gets a new statement; otherwise the machine keeps what was taken from it: look at it, and revoke its key if it was taken over (docs/security.md)",
	}},
	{errEarly, "early", clustermesh.Problem{
		Code: problem.RecordAhead, Message: "a node says what its cluster signs for the future",
		Try: "correct the clock that is wrong: that of the machine that is named, or this one's",
	}},
}
