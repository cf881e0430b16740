package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/node"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/clustermesh/trust"
)

// signer implements stream.Signer while a machine has the root.
type signer struct{ *Gossip }

var _ stream.Signer = signer{}

// signer returns what signs for other machines; nil if this one never signs for any.
func (g *Gossip) signer() stream.Signer {
	if g.cfg.Attest == nil || g.cfg.Authority == nil {
		return nil
	}
	return signer{g}
}

// root returns the root of the cluster; nil while this machine does not have it.
func (g *Gossip) root() *authority.PrivateKey {
	return ask(g, func(n *node.Node, _ time.Time) *authority.PrivateKey { return n.Root() })
}

// Reroot gives this machine the root of its cluster, or another one, or takes it away with nil. With it,
// the machine signs at once, for others too. What was signed before stays in force.
func (g *Gossip) Reroot(root *authority.PrivateKey) {
	g.learn()
	g.do(func(n *node.Node, now time.Time) { n.SetRoot(root, now) })
}

// Signs implements stream.Signer.
func (s signer) Signs() bool { return s.root() != nil }

// ProveRoot implements stream.Signer.
func (s signer) ProveRoot(channel []byte) []byte {
	root := s.root()
	if root == nil {
		return nil
	}
	return root.ProveRoot(channel)
}

// Knows implements stream.Signer: the peer has the key of a node whose record is here.
func (s signer) Knows(p stream.Peer) bool {
	shown := s.verify(p)
	return ask(s.Gossip, func(n *node.Node, _ time.Time) bool { return n.Knows(peerOf(p), shown) })
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
		s.do(func(n *node.Node, now time.Time) { n.ReportRefusedRequest(about, err, now) })
		return authority.Answer{Refused: err.Error()}.Encode()
	}
	s.log.Debug("a statement was signed", "node", about, "left out", len(answer.Left))
	s.do(func(n *node.Node, now time.Time) { n.ReportWithheld(about, answer.Left, now) })
	return answer.Encode()
}

func (s signer) certify(ctx context.Context, p stream.Peer, channel, request []byte) (a authority.Answer, about clustermesh.Origin, err error) {
	r, err := authority.OpenRequest(request, channel)
	about = r.Want.Origin()
	if err != nil {
		return a, about, err
	}
	if err := ask(s.Gossip, func(n *node.Node, _ time.Time) error { return n.MayIssue(r.Want) }); err != nil {
		return a, about, err
	}
	if err := s.attests.wait(ctx, s.Knows(p)); err != nil {
		return a, about, err
	}
	if err := s.cfg.Attest(ctx, r); err != nil {
		return a, about, err
	}
	var objects *authority.Objects
	if s.cfg.Objects != nil {
		listed, read := s.cfg.Objects()
		if !read {
			return a, about, errNotRead
		}
		objects = &listed
	}
	s.do(func(n *node.Node, now time.Time) {
		if s.cfg.clock != nil {
			now = s.cfg.clock()
		}
		a.Statement, a.Left, err = n.Issue(r.Want, objects, p.Statement, now)
	})
	return a, about, err
}

// errNotRead means that the machine that should sign has only just started.
var errNotRead = errors.New("the signer has not read the objects of its cluster yet")

// keepStated keeps the statement about this node up to date, until ctx ends.
func (g *Gossip) keepStated(ctx context.Context) {
	began, wait := time.Now(), node.FirstRequest
	for sleep(ctx, pause(wait)) {
		var wanted node.Wanted
		var due bool
		g.do(func(n *node.Node, now time.Time) { wanted, due = n.Wanted(now) })
		var err error
		if due {
			err = g.askAny(ctx, wanted)
		}
		g.do(func(n *node.Node, now time.Time) { n.ReportStatement(err, began, now) })
		wait = node.NextRequest(wait, err)
	}
}

// askAny asks one after the other, until one signs. Of the errors, it returns one of a signer.
func (g *Gossip) askAny(ctx context.Context, wanted node.Wanted) error {
	failure := node.ErrNoSigners
	for _, s := range wanted.Signers {
		err := g.askAt(ctx, s.At, wanted.Statement)
		if err == nil {
			return nil
		}
		if failed := (*net.OpError)(nil); errors.As(err, &failed) {
			host{g}.Missed(s.Node, s.At) // it may be elsewhere
		}
		g.log.Debug("no statement", "signer", s.At, "err", err)
		if !errors.Is(err, stream.ErrNoSigner) {
			failure = err
		}
	}
	return failure
}

// askAt asks one signer, and puts the statement in force.
func (g *Gossip) askAt(ctx context.Context, at netip.AddrPort, want authority.Statement) error {
	pins := g.Trust().Listed
	answer, err := g.streams.AskSigner(ctx, at, func(channel, introduction []byte) ([]byte, error) {
		if !pins[want.Cluster].VerifyRoot(channel, introduction) {
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
	g.do(func(n *node.Node, now time.Time) {
		err = n.Adopt(trust.Signed{Statement: s, Bytes: a.Statement, At: now}, want, a.Left, now)
	})
	if err != nil {
		return fmt.Errorf("%s answers: %w", at, err)
	}
	return nil
}

// learn notes what the cluster's objects list of its nodes. It asks without the lock.
func (g *Gossip) learn() {
	if g.cfg.Objects == nil {
		return
	}
	if objects, known := g.cfg.Objects(); known {
		g.do(func(n *node.Node, _ time.Time) { n.SetObjects(objects) })
	}
}
