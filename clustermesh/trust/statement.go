package trust

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
)

// Signed is a statement with the signed bytes that prove it; no bytes mean that there is none.
type Signed struct {
	authority.Statement
	Bytes []byte
	// At is when it was put in force about this node, by this machine's clock: that of the signer may
	// differ. It is zero if it comes from an earlier life of the daemon, or is about another node.
	At time.Time
}

// credentials are the statement about this node, and what it needs to get another one.
type credentials struct {
	*verifier
	// current is the statement about this node; wanted is what it should contain, and requested what was
	// requested when it was issued.
	current           Signed
	wanted, requested authority.Statement
	bare              []byte // the statement to show before there is another one; see Statement
	former            uint64 // the serial of the statement in an earlier life
	// ignored is what other clusters leave out of this node's record. Withheld is what its cluster did not
	// state of it.
	ignored, withheld []clustermesh.Problem
}

// Root returns the root of this node's cluster; nil while this machine does not have it.
func (s *credentials) Root() *authority.PrivateKey { return s.cfg.Root }

// SetRoot gives this machine the root, or takes it away. The statement about this node stays in force,
// and another one is not requested while it contains what the node wants.
func (s *credentials) SetRoot(root *authority.PrivateKey) {
	s.setRoot(root)
	s.bare = nil
	if root == nil && s.current.Bytes != nil && s.current.Satisfies(s.wanted) {
		s.requested = s.wanted
	}
}

// Follower reports whether this machine requests the statement about itself from others: it knows who has the
// root, and does not have it now. It then never leads.
func (s *credentials) Follower() bool { return s.cfg.Root == nil && s.listed != nil }

// Current returns the statement about this node.
func (s *credentials) Current() Signed { return s.current }

// Wanted returns what a statement about this node should contain, without times.
func (s *credentials) Wanted() authority.Statement { return s.wanted }

// Statement returns the signed statement to show to peers; nil if there is none. Until this node has
// published anything, a machine with the root states its key alone.
func (s *credentials) Statement(now time.Time) ([]byte, error) {
	if s.current.Bytes != nil || s.cfg.Root == nil {
		return s.current.Bytes, nil
	}
	if s.bare == nil {
		signed, err := s.describe(nil).Signed(now).Sign(*s.cfg.Root)
		if err != nil {
			return nil, fmt.Errorf("sign the statement about this node: %w", err)
		}
		s.bare = signed
	}
	return s.bare, nil
}

// Seal returns the seal of a record that this node writes; nil if it has none. If the statement about
// this node cannot be signed again, it returns an error and a seal with the one before.
func (s *Store) Seal(e replica.Entry, now time.Time) (seal []byte, err error) {
	raw, err := e.Bytes()
	if err != nil {
		return nil, err
	}
	if e.Record.Origin.Node == "" {
		s.verified.delete(e.Record.Origin) // what this node writes itself needs no proof
		if s.cfg.Root == nil {
			return nil, nil
		}
		return authority.Seal(*s.cfg.Root, raw, nil), nil
	}
	stated, err := s.UpdateStatement(e.Record.Content.Node, now)
	if !stated {
		return nil, err
	}
	s.CheckOwn(e.Record)
	return authority.Seal(s.cfg.Node, raw, s.current.Bytes), err
}

// OwnRecord is replica.Config.Own: whether this node proves its WireGuard key is known before any statement
// contains it.
func (s *credentials) OwnRecord(r clustermesh.Record) clustermesh.Record {
	r.KeyProven = s.pins != nil && s.wanted.KeyProven && r.Content.Node != nil && r.Content.Node.PublicKey == s.wanted.WireGuard
	return r
}

// CheckOwn notes what other clusters leave out of this node's record, if they pinned the ranges that
// this cluster has by its own pin.
func (s *credentials) CheckOwn(r clustermesh.Record) {
	s.ignored = nil
	pin, pinned := s.pins[s.self.Cluster]
	if !pinned || len(pin.Pods) == 0 {
		return
	}
	pin.Namespaces = []string{"*"}
	if n := r.Content.Node; len(pin.Nodes) == 0 && n != nil {
		// As install and the leader pin their own cluster: it does not say what others pin of its
		// machines.
		for _, a := range n.Addresses {
			pin.Nodes = append(pin.Nodes, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	r.Problems = nil
	s.ignored = authority.Admit(authority.Self{}, pin, s.current.Statement, r).Problems
	for i := range s.ignored {
		s.ignored[i].Message += " by other clusters"
	}
}

// describe returns what a statement about this node should contain, without times.
func (s *credentials) describe(n *clustermesh.Node) authority.Statement {
	want := authority.Statement{Cluster: s.self.Cluster, Node: s.self.Node, Key: s.key}
	if n == nil {
		return want
	}
	want.WireGuard, want.Locality = n.PublicKey, n.Locality
	if proven := want.WithProof(s.cfg.Proof); proven.KeyProven {
		want = proven
	}
	want.Addresses = slices.DeleteFunc(slices.Clone(n.Addresses), func(a netip.Addr) bool { return clustermesh.CheckHost(a) != nil })
	want.Addresses = want.Addresses[:min(len(want.Addresses), authority.MaxAddresses)]
	want.Prefixes = slices.DeleteFunc(slices.Clone(n.Prefixes), func(p netip.Prefix) bool { return clustermesh.IsTunnelAddr(p.Addr()) })
	return want
}

// UpdateStatement makes sure that there is a statement about this node that contains what n does, as far
// as its cluster knows that to be right, and that is not due to be renewed. It reports whether there is
// any. Without the root it only notes what to request.
func (s *Store) UpdateStatement(n *clustermesh.Node, now time.Time) (stated bool, err error) {
	s.wanted = s.describe(n)
	stated = s.current.Bytes != nil
	if s.cfg.Root == nil {
		return stated, nil
	}
	want, withheld, known := s.certify(now)
	if !known {
		return stated, nil
	}
	s.withheld = withheld
	if stated && s.current.Satisfies(want) && !s.due(now) && !s.superseded(now) {
		return true, nil
	}
	want = want.Above(s.latest(s.self, now))
	want.Root = s.rootKey
	signed, err := want.Sign(*s.cfg.Root)
	if err != nil {
		return stated, fmt.Errorf("sign the statement about this node: %w", err)
	}
	s.current = Signed{want, signed, now}
	return true, nil
}

// NeedsRenewal reports whether this machine, which has the root, should sign the statement about itself
// again: it is old, contains what its cluster would not state any more, or is withdrawn or will be.
func (s *Store) NeedsRenewal(now time.Time) bool {
	return s.due(now) || s.outdated(now) || s.cfg.Root != nil && s.isRecalled(now)
}

// due reports whether the statement about this machine, which has the root, is old, or was signed by
// another root.
func (s *credentials) due(now time.Time) bool {
	return s.cfg.Root != nil && s.current.Bytes != nil && (s.old(now, authority.Renewal) || s.current.Root != s.rootKey)
}

func (s *credentials) old(now time.Time, limit time.Duration) bool {
	age := now.Round(0).Sub(s.current.At.Round(0)) // not by the monotonic clock, which stops while a machine sleeps
	return age > limit || age < -time.Minute
}

// superseded reports whether others do not believe this node under the statement about it, because they
// know a later one: another daemon with this name has it. Or its cluster withdraws it.
func (s *credentials) superseded(now time.Time) bool {
	return s.current.Bytes != nil && s.current.Older(s.verified.of[s.self].latest, now) || s.isRecalled(now)
}

// latest returns the highest serial that is known of statements about a node.
func (s *credentials) latest(o clustermesh.Origin, now time.Time) uint64 {
	latest := max(s.verified.of[o].Serial, s.verified.of[o].latest.Serial)
	if o == s.self {
		latest = max(latest, s.current.Serial, s.former)
	}
	if below := authority.Below(s.withdrawn(o.Cluster), o.Node, now, true); below > 0 {
		latest = max(latest, below-1)
	}
	return latest
}

// How long a machine without the root waits before it requests a better statement again: Rotating while
// the cluster has two roots and the former one signed it, or while others do not believe it; Lacking
// while the statement lacks something. The signer may know more of the node meanwhile, or its clock may
// be right, or it may know proofs of WireGuard keys, which the version before does not.
const (
	Rotating = 5 * time.Second
	Lacking  = 30 * time.Second
)

// Requests reports whether this machine should request a statement about itself, which contains Wanted.
func (s *credentials) Requests(now time.Time) bool {
	if !s.Follower() || s.wanted.Node == "" {
		return false // nothing was published yet
	}
	limit := authority.Renewal
	roots := s.listed[s.self.Cluster].Roots
	switch {
	case s.current.Bytes == nil || !s.requested.Matches(s.wanted):
		return true
	case len(roots) > 0 && s.current.Root != roots[len(roots)-1]:
		limit = Rotating
	case s.superseded(now), s.current.Age(now) == authority.Early:
		limit = Rotating
	case !s.current.Satisfies(s.wanted), s.current.At.Sub(time.Unix(s.current.NotBefore, 0)).Abs() > authority.MaxAhead:
		limit = Lacking
	}
	return s.old(now, limit)
}

// Errors of Adopt: a signer's clock is wrong.
var (
	ErrSignerAhead  = errors.New("it signs for the future; correct the clock that is wrong")
	ErrSignerBehind = errors.New("what it signs is older than the statement in force, and differs; correct its clock")
)

// Adopt puts a statement about this node in force, which another machine signed when this one had requested
// one; withheld is what that did not state. It returns an error, and changes nothing, if others would
// not believe the statement, and believe the current one.
func (s *credentials) Adopt(next Signed, requested authority.Statement, withheld []clustermesh.Problem) error {
	if err := s.better(next.Statement, next.At); err != nil {
		return err
	}
	s.current, s.requested, s.withheld = next, requested, withheld
	return nil
}

// better returns an error if the current statement about this node is better than another one, which
// others would not believe. It returns nil if the current one has expired or is not valid yet.
func (s *credentials) better(next authority.Statement, now time.Time) error {
	have := s.current
	if age := have.Age(now); have.Bytes == nil || age == authority.Early || age == authority.Expired {
		return nil
	}
	switch {
	case next.Age(now) == authority.Early:
		return ErrSignerAhead
	case next.Older(have.Statement, now):
		return ErrSignerBehind
	}
	return nil
}

// Restore takes the statement that was saved, if it is about this node and its key.
func (s *credentials) Restore(signed []byte) {
	saved, err := authority.OpenStatement(signed, s.listed)
	if err == nil && s.Follower() && saved.Origin() == s.self && saved.Key == s.key && saved.Serial >= s.current.Serial {
		s.current = Signed{Statement: saved, Bytes: signed}
	}
}

// RestoreSealed takes the statement in the seal of this node's own record, as it was saved. A machine
// that had the root in its last life has saved no other.
func (s *credentials) RestoreSealed(e replica.Entry) {
	raw, err := e.Bytes()
	if err != nil {
		return
	}
	if saved, err := VerifySeal(s.listed, s.self, raw, e.Seal(), Signed{}); err == nil {
		s.former = saved.Serial
		s.Restore(saved.Bytes)
	}
}
