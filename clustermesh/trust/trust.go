// Package trust decides whose records and connections a node believes, and keeps the statement with
// which the node itself is believed.
//
// Inputs are keys and pins, records with their seals, what a peer shows on a connection, what the
// objects of the node's cluster list of its nodes, and the time. Outputs are the part of a record that
// its origin may write, the reason why a record or a peer is refused, the statement about this node,
// the statements that a node with the root issues and withdraws, and Problems. It verifies with package
// authority, which keeps nothing. It must not know sockets, files, clocks or which nodes are members,
// and nothing leads from it to package gossip.
//
// A Store has three parts: verifier decides about others (admit.go, repin.go, refuse.go, peer.go, revoke.go,
// machines.go), credentials keep the statement about this node (statement.go), and issuer states and
// withdraws what is true of the other nodes of the cluster (issue.go, withdraw.go).
package trust

import (
	"crypto/sha256"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/key"
)

// Config is a node's keys, and whose signatures it believes.
type Config struct {
	// Root is the key of this node's cluster; nil on a machine that does not have it. See SetRoot. Node
	// is the machine's own key.
	Root *authority.PrivateKey
	Node authority.PrivateKey
	// Proof shows that this machine has the private key of its tunnels, see authority.ProveKey;
	// zero if it has no tunnels.
	Proof key.Signature
	// Pins are the clusters that are believed. Nil believes everyone who has the gossip key.
	Pins authority.Pins
	// Lax believes everyone in spite of the pins, which then only list who can sign for this machine. So
	// all machines of a clusterset can sign before any refuses what is not signed.
	Lax bool
	// Ranges are what no other cluster can have, besides the pinned ranges of this cluster: those of
	// its Services and ClusterSetIPs.
	Ranges []netip.Prefix
	// ConfigFrom are the clusters whose configuration this cluster accepts.
	ConfigFrom []clustermesh.ClusterName
	// WithdrawAfter is how long a withdrawal is announced; zero is authority.WithdrawAfter. Tests shorten it.
	WithdrawAfter time.Duration
	// Verify verifies the seal of a record; nil is VerifySeal. A simulation of many nodes verifies
	// only once what all of them receive.
	Verify func(pins authority.Pins, o clustermesh.Origin, raw, seal []byte, known Signed) (Signed, error)
}

// Checks reports whether the pins decide who is believed. A nil Config believes everyone.
func (c *Config) Checks() bool { return c != nil && c.Pins != nil && !c.Lax }

// Records are the records that a node has already.
type Records interface {
	// Peek returns the record of an origin, nil if there is none. It must not be changed.
	Peek(clustermesh.Origin) *clustermesh.Record
	// Changed identifies the last change of the records of a cluster and its nodes; 0 if there are none.
	Changed(clustermesh.ClusterName) uint64
	Count(clustermesh.ClusterName) (of replica.Count, clusters int)
}

// none are the records before SetRecords.
type none struct{}

func (none) Peek(clustermesh.Origin) *clustermesh.Record        { return nil }
func (none) Changed(clustermesh.ClusterName) uint64             { return 0 }
func (none) Count(clustermesh.ClusterName) (replica.Count, int) { return replica.Count{}, 0 }

// Store is what one node trusts, and what others trust it by. It is not safe for concurrent use.
type Store struct {
	*verifier
	*credentials
	*issuer
}

// verifier decides about the records and connections of others.
type verifier struct {
	cfg  Config
	self clustermesh.Origin
	// key and rootKey are the public keys of Config.Node and Config.Root, which takes time to compute.
	key, rootKey authority.PublicKey
	// pins are the clusters that are believed; nil believes everyone. Listed are the pins by which this
	// machine knows who can sign for it: also with Config.Lax, which leaves pins nil.
	pins, listed authority.Pins
	// records are those that count when records of more nodes or clusters arrive.
	records Records
	// generation counts the changes of the pins, and impostors the peers that did not prove who they are.
	generation, impostors uint64

	// verified is what was verified last of each origin, so that nothing is verified twice, and no older
	// statement comes back. It has at most maxVerified elements, or as many as records are here.
	verified verified
	uids     uids
	// refusals are examples of the records refused, and refused counts them by reason.
	refusals map[refusal]example
	refused  map[string]uint64
	// machines are the addresses of this cluster's nodes, by their statements. They are no other
	// cluster's endpoints, so records must be admitted again when they change: then stale is true.
	machines map[netip.Addr]bool
	stale    bool
	// receiver is what Admit knows of this cluster: its pinned pods, Ranges and machines, and what its
	// namespaces accept.
	receiver authority.Self
	accept   clustermesh.Accept
	local    clustermesh.LocalNamespaces
	// joined are the times at which the pinned clusters joined, and quotas how many of their exports become
	// imports; neither map is ever changed.
	joined map[clustermesh.ClusterName]int64
	quotas map[clustermesh.ClusterName]int
	// revoked are the fingerprints, and void the withdrawals in force, by which records were admitted last.
	revoked map[clustermesh.ClusterName][]string
	void    map[clustermesh.ClusterName][]clustermesh.Withdrawal
}

// verification is the last record of an origin that was verified: the checksum of its bytes and its
// seal. It has no statement if it is a cluster's.
type verification struct {
	Signed
	sum [sha256.Size]byte
	// version and seal are those of the entry, as it is held.
	version replica.Version
	seal    []byte
	// latest is the statement about the node that makes older ones void.
	latest authority.Statement
	// replaced is the first serial after an earlier statement that gave the node more, besides
	// single pods; 0 if there was none.
	replaced uint64
}

// maxVerified bounds what is remembered as verified.
const maxVerified = 1 << 16

// New returns the store of a node. A nil Config signs nothing and believes everyone.
func New(cfg *Config, self clustermesh.Origin) *Store {
	v := &verifier{
		self: self, records: none{}, verified: newVerified(self.Cluster), machines: map[netip.Addr]bool{},
		refusals: map[refusal]example{}, refused: map[string]uint64{}, revoked: map[clustermesh.ClusterName][]string{},
		void: map[clustermesh.ClusterName][]clustermesh.Withdrawal{},
	}
	if cfg != nil {
		v.cfg = *cfg
		v.key = cfg.Node.Public()
		v.setRoot(cfg.Root)
		v.pin(cfg.Pins)
	}
	if v.cfg.WithdrawAfter == 0 {
		v.cfg.WithdrawAfter = authority.WithdrawAfter
	}
	if v.cfg.Verify == nil {
		v.cfg.Verify = VerifySeal
	}
	v.receive()
	c := &credentials{verifier: v}
	return &Store{verifier: v, credentials: c, issuer: &issuer{verifier: v, credentials: c, issued: map[clustermesh.Origin]authority.Statement{}}}
}

// SetRecords gives the store the records that the node has. Until then, there are none.
func (s *verifier) SetRecords(r Records) { s.records = r }

// setRoot sets the root that this machine has; nil for none.
func (s *verifier) setRoot(root *authority.PrivateKey) {
	s.cfg.Root, s.rootKey = root, authority.PublicKey{}
	if root != nil {
		s.rootKey = root.Public()
	}
}

// pin puts pins in force.
func (s *verifier) pin(pins authority.Pins) {
	s.listed, s.pins = pins, pins
	if s.cfg.Lax {
		s.pins = nil
	}
}

// receive brings receiver, joined and quotas up to date.
func (s *verifier) receive() {
	s.receiver = authority.Self{Cluster: s.self.Cluster, Own: slices.Concat(s.pins[s.self.Cluster].Pods, s.cfg.Ranges), Machines: s.machines, Accept: s.accept, LocalNamespaces: s.local, ConfigFrom: s.cfg.ConfigFrom}
	s.joined, s.quotas = map[clustermesh.ClusterName]int64{}, map[clustermesh.ClusterName]int{}
	for c, p := range s.pins {
		s.quotas[c] = p.Quota.WithDefaults().Exports
		if !p.Joined.IsZero() {
			s.joined[c] = p.Joined.Unix()
		}
	}
}

// SetLax makes the next Repin believe everyone, or only the pinned clusters; see Config.Lax. It
// reports whether that is a change.
func (s *verifier) SetLax(lax bool) (changed bool) {
	changed = s.cfg.Lax != lax
	s.cfg.Lax = lax
	return changed
}

// SetAccept sets which clusters' Services the namespaces of this cluster accept, and which namespaces
// are local. It reports whether that is a change: then all records must be admitted again.
func (s *verifier) SetAccept(a clustermesh.Accept, l clustermesh.LocalNamespaces) (changed bool) {
	if s.accept.Equal(a) && s.local.Equal(l) {
		return false
	}
	s.accept, s.local = a, l
	s.receive()
	s.stale = false
	return true
}

// Pins returns the clusters that are believed; nil if everyone is who has the gossip key.
func (s *verifier) Pins() authority.Pins { return s.pins }

// Lax reports whether everyone is believed in spite of the pins.
func (s *verifier) Lax() bool { return s.cfg.Lax }

// Listed returns the pins, also those that only list who can sign for this node.
func (s *verifier) Listed() authority.Pins { return s.listed }

// Generation changes with the pins.
func (s *verifier) Generation() uint64 { return s.generation }

// Pinned reports whether a cluster is pinned.
func (s *verifier) Pinned(c clustermesh.ClusterName) bool {
	_, pinned := s.pins[c]
	return pinned
}

// Joined returns when the pinned clusters joined, in Unix seconds. The map is never changed afterwards.
func (s *verifier) Joined() map[clustermesh.ClusterName]int64 { return s.joined }

// Quotas returns how many exports of the pinned clusters become imports. The map is never changed
// afterwards.
func (s *verifier) Quotas() map[clustermesh.ClusterName]int { return s.quotas }
