package gossip

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/trust"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/problem"
)

// signer implements stream.Signer while a machine has the root.
type signer struct{ *Gossip }

var _ stream.Signer = signer{}

// errRootless means that a machine lost the root while it was asked.
var errRootless = errors.New("the signer does not have the root of its cluster any more")

// signer returns what signs for other machines; nil if this one never signs for any.
func (g *Gossip) signer() stream.Signer {
	if g.cfg.Attest == nil || g.cfg.Authority == nil {
		return nil
	}
	return signer{g}
}

// root returns the root of the cluster; nil while this machine does not have it.
func (g *Gossip) root() *authority.PrivateKey {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trust.Root()
}

// Reroot gives this machine the root of its cluster, or another one, or takes it away with nil. With it,
// the machine signs at once, for others too. What was signed before stays in force.
func (g *Gossip) Reroot(root *authority.PrivateKey) {
	g.learn()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trust.SetRoot(root)
	if g.trust.Follower() && g.leader.update(false, time.Now()) {
		g.elected()
	}
	g.events.Poke() // it may lead now
	if root == nil {
		return
	}
	if g.publish() { // until now there was no statement about this node
		g.changed.Poke()
		return
	}
	g.apply(g.replica.Renew())
}

// Signs implements stream.Signer.
func (s signer) Signs() bool { return s.root() != nil }

// Introduce implements stream.Signer.
func (s signer) Introduce(channel []byte) []byte {
	root := s.root()
	if root == nil {
		return nil
	}
	return root.Introduce(channel)
}

// Knows implements stream.Signer: the peer has the key of a node whose record is here.
func (s signer) Knows(p stream.Peer) bool {
	stated, _ := s.shows(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.Origin.Cluster == s.cfg.Self.Cluster && s.trust.Pinned(p.Origin.Cluster) && s.trust.Proves(peerOf(p, stated))
}

// Check implements stream.Signer.
func (s signer) Check(channel, request []byte) (stream.Key, error) {
	r, err := authority.OpenRequest(request, channel)
	return stream.Key(r.Want.Key), err
}

// Answer implements stream.Signer.
func (s signer) Answer(ctx context.Context, p stream.Peer, channel, request []byte) []byte {
	answer, about, err := s.certify(ctx, p, channel, request)
	if err != nil {
		s.unstated(about, err)
		return authority.Answer{Refused: err.Error()}.Encode()
	}
	s.log.Debug("a statement was signed", "node", about, "left out", len(answer.Left))
	s.reportWithheld(about, answer.Left)
	return answer.Encode()
}

func (s signer) certify(ctx context.Context, p stream.Peer, channel, request []byte) (a authority.Answer, about clustermesh.Origin, err error) {
	r, err := authority.OpenRequest(request, channel)
	about = r.Want.Origin()
	if err != nil {
		return a, about, err
	}
	if about.Cluster != s.cfg.Self.Cluster {
		return a, about, fmt.Errorf("%s is of another cluster than %s", about, s.cfg.Self.Cluster)
	}
	if s.revokes(about.Cluster, r.Want.Key) {
		return a, about, trust.ErrRevoked
	}
	if err := s.attests.wait(ctx, s.Knows(p)); err != nil {
		return a, about, err
	}
	if err := s.cfg.Attest(ctx, r); err != nil {
		return a, about, err
	}
	s.stating.Lock()
	defer s.stating.Unlock()
	known, err := s.known(r.Want)
	if err != nil {
		return a, about, err
	}
	now := time.Now()
	if s.cfg.clock != nil {
		now = s.cfg.clock()
	}
	stated, left := authority.Certify(r.Want, known, now)
	root := s.root()
	if root == nil {
		return a, about, errRootless
	}
	stated = stated.Above(s.latest(about, p.Statement))
	a.Left = left
	if a.Statement, err = stated.Sign(*root); err != nil {
		return a, about, err
	}
	s.granted(stated)
	return a, about, nil
}

// errNotRead means that the machine that was asked has only just started.
var errNotRead = errors.New("the signer has not read the objects of its cluster yet")

// known returns what to compare a wanted statement with.
func (g *Gossip) known(want authority.Statement) (authority.Known, error) {
	if g.cfg.Objects == nil {
		return authority.Known{Node: authority.Holder{Locality: want.Locality, Addresses: want.Addresses, PodCIDRs: want.Prefixes}}, nil
	}
	objects, read := g.cfg.Objects()
	if !read {
		return authority.Known{}, errNotRead
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trust.Known(want, objects, time.Now()), nil
}

func (g *Gossip) granted(s authority.Statement) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trust.AddIssued(s)
}

// latest returns the highest serial that is known of a node, which may show a statement of another signer.
func (g *Gossip) latest(o clustermesh.Origin, shown []byte) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trust.LatestSerial(o, shown, time.Now())
}

func (g *Gossip) revokes(c clustermesh.ClusterName, k authority.PublicKey) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trust.Revokes(c, k)
}

// maxUnstated is how many nodes that were refused are named. Whoever has the gossip key can ask about any.
const maxUnstated = 8

// unstated reports a node that asked for a statement and was refused.
func (g *Gossip) unstated(about clustermesh.Origin, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := "unstated " + about.String()
	if !g.problems.has(key) && g.problems.count("unstated ") >= maxUnstated {
		return
	}
	g.strange(key, clustermesh.Problem{
		Code: problem.StatementMissing, Object: "node " + about.String(), Warning: true,
		Message: fmt.Sprintf("it asks this machine for a statement, and is refused: %v", cause),
		Try:     "nothing to do if it is none of this cluster's machines",
	})
}

// Pauses between attempts to get a statement. What changes is asked for at once, but not more often than
// each firstAsk: pods can come one after the other. The pause doubles with each refusal; while nobody
// is heard who could sign, it is at most unheardAsk.
const (
	firstAsk   = 200 * time.Millisecond
	lastAsk    = 15 * time.Second
	unheardAsk = time.Second
	// askGrace is how long a starting node waits for a statement before it says that it has none.
	askGrace = 5 * time.Second
)

// keepStated keeps the statement about this node up to date, until ctx ends.
func (g *Gossip) keepStated(ctx context.Context) {
	began, wait := time.Now(), firstAsk
	for sleep(ctx, pause(wait)) {
		want, signers, asks := g.toAsk(time.Now())
		var err error
		if asks {
			err = g.askAny(ctx, signers, want)
		}
		g.reportStatement(err, began)
		wait = nextAsk(wait, err)
	}
}

// nextAsk returns the pause after an attempt, from the one before it.
func nextAsk(wait time.Duration, err error) time.Duration {
	switch {
	case err == nil:
		return firstAsk
	case errors.Is(err, trust.ErrSignerAhead):
		return trust.Rotating // its clock can be right at any moment
	case errors.Is(err, errNoSigners):
		return min(2*wait, unheardAsk)
	}
	return min(2*wait, lastAsk)
}

// errNoSigners means that nobody can be asked.
var errNoSigners = errors.New("no machine of the cluster that has its root is heard")

// signerAt is a machine that may sign, and where to ask it.
type signerAt struct {
	of clustermesh.Origin
	at netip.AddrPort
}

// toAsk returns the statement to ask for and whom to ask, in random order.
func (g *Gossip) toAsk(now time.Time) (want authority.Statement, signers []signerAt, asks bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.trust.Requests(now) {
		return authority.Statement{}, nil, false
	}
	for _, o := range g.contacts.Alive() {
		r, _ := g.replica.Record(o)
		if follower := r.Content.Node != nil && r.Content.Node.Follower; o.Cluster == g.cfg.Self.Cluster && !follower {
			signers = append(signers, signerAt{o, g.place(o, now)})
		}
	}
	rand.Shuffle(len(signers), func(i, j int) { signers[i], signers[j] = signers[j], signers[i] })
	return g.trust.Wanted(), signers, true
}

// askAny asks one after the other, until one signs. Of the errors, it returns one of a signer.
func (g *Gossip) askAny(ctx context.Context, signers []signerAt, want authority.Statement) error {
	said := errNoSigners
	for _, s := range signers {
		err := g.askAt(ctx, s.at, want)
		if err == nil {
			return nil
		}
		if failed := (*net.OpError)(nil); errors.As(err, &failed) {
			host{g}.Missed(s.of, s.at) // it may be elsewhere
		}
		g.log.Debug("no statement", "signer", s.at, "error", err)
		if !errors.Is(err, stream.ErrNoSigner) {
			said = err
		}
	}
	return said
}

// askAt asks one signer, and puts the statement in force.
func (g *Gossip) askAt(ctx context.Context, at netip.AddrPort, want authority.Statement) error {
	pins := g.Trust().Listed
	answer, err := g.streams.AskSigner(ctx, at, func(channel, introduction []byte) ([]byte, error) {
		if !pins[want.Cluster].Introduced(channel, introduction) {
			return nil, fmt.Errorf("%s does not have the pinned root of cluster %s", at, want.Cluster)
		}
		r := authority.Request{Want: want}
		if g.cfg.Token != nil {
			var err error
			if r.Token, err = g.cfg.Token(); err != nil {
				return nil, err
			}
		}
		return r.Sign(g.cfg.Authority.Node, channel)
	})
	if err != nil {
		return err
	}
	s, a, err := authority.OpenAnswer(answer, want, pins)
	if err != nil {
		return fmt.Errorf("%s answers: %w", at, err)
	}
	if err := g.adopt(trust.Signed{Statement: s, Bytes: a.Statement, At: time.Now()}, want, a.Left); err != nil {
		return fmt.Errorf("%s answers: %w", at, err)
	}
	return nil
}

// adopt puts a statement about this node in force, unless others would not believe it. It lacks what is left.
func (g *Gossip) adopt(s trust.Signed, asked authority.Statement, left []clustermesh.Problem) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.checkSigner(s)
	if err := g.trust.Adopt(s, asked, left); err != nil {
		return err
	}
	if err := saveStatement(g.cfg.StateDir, s.Bytes); err != nil {
		g.log.Warn("cannot save the statement about this node; if it restarts while no signer is heard, it is not believed", "error", err)
	}
	if g.publish() { // it is the first one
		g.changed.Poke()
		return nil
	}
	g.apply(g.replica.Renew())
	return nil
}

// reportStatement reports why there is no statement as wanted; nothing if err is nil. Of a signer whose
// clock is ahead, checkSigner has reported.
func (g *Gossip) reportStatement(err error, began time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil || errors.Is(err, trust.ErrSignerAhead) {
		g.solved("statement")
		return
	}
	if time.Since(began) < askGrace {
		return
	}
	p := clustermesh.Problem{
		Code: problem.StatementMissing, Object: "node " + g.cfg.Self.String(),
		Message: fmt.Sprintf("its cluster states nothing about it, so nobody believes what it says: %v", err),
		Try:     "look at strait status on that machine",
	}
	if errors.Is(err, errNoSigners) {
		p.Try = "start straitd on a machine with authority.rootFile; in Kubernetes, look at the Deployment strait-leader"
	}
	if g.trust.Lax() {
		p.Warning = true
		p.Message = fmt.Sprintf("its cluster states nothing about it, so clusters with pins do not believe what it says: %v", err)
	}
	if g.trust.Current().Bytes != nil {
		p.Warning = true
		p.Message = fmt.Sprintf("the statement about it is not renewed, and what it said stays in force: %v", err)
	}
	g.problem("statement", p, 0)
}

// statementFile holds the statement about this node, for a start while no signer is heard.
const (
	statementFile    = "statement.cbor"
	maxStatementFile = 1 << 20 // bytes; more than a signer can send
)

func saveStatement(dir string, signed []byte) error {
	if dir == "" {
		return nil
	}
	return durable.Replace(filepath.Join(dir, statementFile), func(f *os.File) error {
		_, err := f.Write(signed)
		return err
	})
}

// restoreStatement takes what saveStatement wrote.
func (g *Gossip) restoreStatement() {
	if g.cfg.StateDir == "" {
		return
	}
	signed, err := durable.Read(filepath.Join(g.cfg.StateDir, statementFile), maxStatementFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.problem("state", stateProblem(err), 0)
	}
	g.trust.Restore(signed)
}
