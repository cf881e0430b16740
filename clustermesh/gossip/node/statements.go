package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/clustermesh/trust"
	"strait.io/strait/internal/problem"
)

// statements are whom a node believes, and the statements about it and those that it issues.
type statements struct {
	*core
	trust *trust.Store
	// unsigned is since when no machine is heard that can sign; zero if one is.
	unsigned time.Time
}

// SetObjects sets what the cluster's objects list of its nodes.
func (s *statements) SetObjects(objects authority.Objects) { s.trust.SetObjects(objects) }

// Root returns the root of the cluster; nil while this machine does not have it.
func (s *statements) Root() *authority.PrivateKey { return s.trust.Root() }

// SetRoot gives this machine the root of its cluster, or another one, or takes it away with nil. With it,
// the machine signs at once. What was signed before stays in force.
func (n *Node) SetRoot(root *authority.PrivateKey, now time.Time) {
	n.now = now
	n.trust.SetRoot(root)
	if n.trust.Follower() && n.election.update(false, now) {
		n.elected()
	}
	n.actions.Beat = true // it may lead now
	if root != nil {
		n.renew()
	}
}

// renew writes this node's record again, under its statement. Until there was one, nothing was written.
func (n *Node) renew() {
	if n.publish() {
		n.actions.Changed = true
		return
	}
	n.apply(n.replica.Renew())
}

// Statement returns the signed statement to show to peers; nil if there is none.
func (s *statements) Statement(now time.Time) []byte {
	signed, err := s.trust.Statement(now)
	if err != nil {
		s.log(Error, "cannot show who this node is", "err", err)
	}
	return signed
}

// seal is replica.Config.Seal.
func (s *statements) seal(e replica.Entry) []byte {
	seal, err := s.trust.Seal(e, s.now)
	if err != nil {
		s.log(Error, "cannot sign a record", "record", e.Record.Origin, "err", err)
	}
	return seal
}

// renewStatement renews the statement about this node when that is due or it contains too much.
func (n *Node) renewStatement() {
	if n.trust.NeedsRenewal(n.now) {
		n.apply(n.replica.Renew())
	}
	n.trust.UpdateMachines()
	if p, revoked := n.trust.KeyRevoked(); revoked {
		n.problem("revoked", p, 0)
	} else {
		n.solved("revoked")
	}
}

// reviewStatements updates what this leader withdraws, and reports what is wrong with nodes and clusters
// that are believed.
func (n *Node) reviewStatements() {
	if n.election.is {
		r, _ := n.replica.Record(clustermesh.Origin{Cluster: n.cfg.Self.Cluster})
		n.trust.Review(r.Stamp.Epoch == n.election.epoch(), n.now)
	} else {
		n.trust.Resign()
	}
	for _, p := range n.trust.Problems(n.contacts.Alive(), n.replica.Records(), n.now) {
		n.problem("trust "+string(p.Code)+" "+p.Object, p, ProblemLife)
	}
}

// Wanted is a request for a statement about this node, and the machines that can sign it.
type Wanted struct {
	Statement authority.Statement
	Signers   []Place
}

// Wanted returns what to request, and from whom, in random order; false if there is nothing to request.
func (n *Node) Wanted(now time.Time) (w Wanted, due bool) {
	if !n.trust.Requests(now) {
		return Wanted{}, false
	}
	for o := range n.contacts.Alive().Of(n.cfg.Self.Cluster) {
		r, _ := n.replica.Record(o)
		if follower := r.Content.Node != nil && r.Content.Node.Follower; !follower {
			w.Signers = append(w.Signers, Place{o, n.Addr(o, now)})
		}
	}
	slices.SortFunc(w.Signers, func(a, b Place) int { return a.Node.Compare(b.Node) })
	n.cfg.Random.Shuffle(len(w.Signers), func(i, j int) { w.Signers[i], w.Signers[j] = w.Signers[j], w.Signers[i] })
	w.Statement = n.trust.Wanted()
	return w, true
}

// Adopt puts a statement about this node in force, unless others would not believe it. Withheld is what the
// signer did not state.
func (n *Node) Adopt(signed trust.Signed, requested authority.Statement, withheld []clustermesh.Problem, now time.Time) error {
	n.now = now
	n.checkSigner(signed)
	if err := n.trust.Adopt(signed, requested, withheld); err != nil {
		return err
	}
	n.actions.Statement = signed.Bytes
	n.renew()
	return nil
}

// ErrNoSigners means that no machine can sign a statement now.
var ErrNoSigners = errors.New("no machine of the cluster that has its root is heard")

// askGrace is how long a starting node waits for a statement before it reports that it has none, and how
// long no signer must be heard: in a rolling upgrade the root moves from node to node.
const askGrace = 5 * time.Second

// ReportStatement reports why there is no statement as wanted; nothing if err is nil. Of a signer whose
// clock is ahead, checkSigner has reported. Began is when this node sent the request.
func (s *statements) ReportStatement(err error, began, now time.Time) {
	s.now = now
	switch {
	case !errors.Is(err, ErrNoSigners):
		s.unsigned = time.Time{}
	case s.unsigned.IsZero():
		s.unsigned = now
	}
	if err == nil || errors.Is(err, trust.ErrSignerAhead) {
		s.solved("statement")
		return
	}
	if now.Sub(began) < askGrace || !s.unsigned.IsZero() && now.Sub(s.unsigned) < askGrace {
		return
	}
	p := s.cfg.Self.Ref().Problem(clustermesh.Problem{
		Code:    problem.StatementMissing,
		Message: fmt.Sprintf("its cluster states nothing about it, so other nodes refuse its record: %v", err),
		Try:     "look at strait status on that machine",
	})
	if errors.Is(err, ErrNoSigners) {
		p.Try = "start straitd on a machine with authority.rootFile; in Kubernetes, look at the Deployment strait-leader"
	}
	if s.trust.Lax() {
		p.Warning = true
		p.Message = fmt.Sprintf("its cluster states nothing about it, so clusters with pins do not believe what it publishes: %v", err)
	}
	if s.trust.Current().Bytes != nil {
		p.Warning = true
		p.Message = fmt.Sprintf("the statement about it is not renewed, and what it published stays in force: %v", err)
	}
	s.problem("statement", p, 0)
}

// maxRefusedRequests bounds the nodes that are named because they were refused a statement. Anyone who has
// the gossip key can request one about any. maxWithheld bounds the parts that were not stated and are shown.
const (
	maxRefusedRequests = 8
	maxWithheld        = 32
)

// ReportRefusedRequest reports a node that requested a statement and was refused.
func (s *statements) ReportRefusedRequest(about clustermesh.Origin, cause error, now time.Time) {
	s.now = now
	key := "unstated " + about.String()
	if !s.problems.has(key) && s.problems.count("unstated ") >= maxRefusedRequests {
		return
	}
	s.strange(key, about.Ref().Problem(clustermesh.Problem{
		Code: problem.StatementMissing, Warning: true,
		Message: fmt.Sprintf("it requests a statement from this machine, and is refused: %v", cause),
		Try:     "nothing to do if it is none of this cluster's machines",
	}))
}

// ReportWithheld reports what this machine did not state of another node, until that requests another one.
func (s *statements) ReportWithheld(about clustermesh.Origin, withheld []clustermesh.Problem, now time.Time) {
	s.now = now
	key := func(i int) string { return fmt.Sprintf("claim of %s %d", about, i) }
	for i, p := range withheld {
		if s.problems.has(key(i)) || s.problems.count("claim of ") < maxWithheld {
			s.problem(key(i), p, trust.Lacking+ProblemLife)
		}
	}
	for i := len(withheld); s.problems.has(key(i)); i++ {
		s.solved(key(i))
	}
}
