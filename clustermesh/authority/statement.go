package authority

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

// Validity is how long a statement is valid, and Renewal how often it is signed again.
const (
	Validity = 24 * time.Hour
	Renewal  = time.Hour
)

// MaxAddresses is how many addresses a node can have on the underlay.
const MaxAddresses = 4

// Statement certifies a node's place in the network and in the world. Its cluster's root signs it. Other
// nodes accept no address, prefix, locality or tunnel key of a node that its statement lacks.
type Statement struct {
	Cluster clustermesh.ClusterName `cbor:"1,keyasint"`
	Node    clustermesh.NodeName    `cbor:"2,keyasint"`
	// Key signs the node's record, and proves on a stream that the node is at the other end.
	Key PublicKey `cbor:"3,keyasint"`
	// WireGuard is the key of the node's tunnels; zero if the mesh is off.
	WireGuard key.Public `cbor:"4,keyasint"`
	// Addresses are the node's own on the underlay, at most MaxAddresses.
	Addresses []netip.Addr `cbor:"5,keyasint,omitempty"`
	// Prefixes contain the addresses of the node's pods.
	Prefixes []netip.Prefix       `cbor:"6,keyasint,omitempty"`
	Locality clustermesh.Locality `cbor:"7,keyasint"`
	// Serial orders the statements about one node. See Older.
	Serial uint64 `cbor:"8,keyasint"`
	// NotBefore and NotAfter are Unix seconds.
	NotBefore int64 `cbor:"9,keyasint"`
	NotAfter  int64 `cbor:"10,keyasint"`
	// Proof proves that the node has the private key of WireGuard, see ProveKey. It is zero for nodes of
	// the previous version.
	Proof key.Signature `cbor:"11,keyasint,omitzero"`
	// Root signed it. It is not on the wire: OpenStatement sets it.
	Root PublicKey `cbor:"-"`
	// KeyProven is true if Proof is valid. It is not on the wire: OpenStatement and Certify set it.
	KeyProven bool `cbor:"-"`
}

// Origin returns the origin that the statement is about.
func (s Statement) Origin() clustermesh.Origin {
	return clustermesh.Origin{Cluster: s.Cluster, Node: s.Node}
}

// signed is a statement on the wire: the exact bytes that were signed, and the signature.
type signed struct {
	_         struct{} `cbor:",toarray"`
	Bytes     []byte
	Signature Signature
}

// MaxStatement bounds a signed statement, in bytes: a node with a prefix for each of 1,000 pods has
// about 20 KB.
const MaxStatement = 64 << 10

var encMode = must(cbor.CoreDetEncOptions().EncMode())

// decMode refuses encodings that Sign never produces, and those that could take a lot of memory.
var decMode = must(cbor.DecOptions{
	DupMapKey:        cbor.DupMapKeyEnforcedAPF,
	MaxNestedLevels:  8,
	MaxArrayElements: 1 << 12,
	MaxMapPairs:      32,
	IndefLength:      cbor.IndefLengthForbidden,
	TagsMd:           cbor.TagsForbidden,
}.DecMode())

// must panics on an error. It is for options that are constants in this file.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Sign returns the statement with the signature of a root.
func (s Statement) Sign(root PrivateKey) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("statement about node %s: %w", s.Origin(), err)
	}
	b, err := encMode.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode statement about node %s: %w", s.Origin(), err)
	}
	return encMode.Marshal(signed{Bytes: b, Signature: root.sign(aboutNode, b)})
}

// OpenStatement decodes a signed statement, and checks that the pinned cluster signed it. It does not
// check the time: an expired statement still identifies the node.
func OpenStatement(b []byte, pins Pins) (Statement, error) {
	if len(b) > MaxStatement {
		return Statement{}, fmt.Errorf("statement has %d bytes, and the limit is %d", len(b), MaxStatement)
	}
	var w signed
	if err := decMode.Unmarshal(b, &w); err != nil {
		return Statement{}, fmt.Errorf("decode signed statement: %w", err)
	}
	var s Statement
	if err := decMode.Unmarshal(w.Bytes, &s); err != nil {
		return Statement{}, fmt.Errorf("decode statement: %w", err)
	}
	if err := s.check(); err != nil {
		return Statement{}, fmt.Errorf("statement about node %s: %w", s.Origin(), err)
	}
	pin, pinned := pins[s.Cluster]
	if !pinned {
		return Statement{}, fmt.Errorf("statement about node %s: %w", s.Origin(), ErrNotPinned)
	}
	for _, root := range pin.Roots {
		if root.verify(aboutNode, w.Bytes, w.Signature) {
			s.Root = root
			return s.WithProof(s.Proof), nil
		}
	}
	return Statement{}, fmt.Errorf("statement about node %s: %w", s.Origin(), ErrNotSigned)
}

// Errors of OpenStatement.
var (
	ErrNotPinned = errors.New("its cluster is not pinned")
	ErrNotSigned = errors.New("no pinned root of its cluster signed it")
)

// check returns an error for a statement that no root would sign.
func (s Statement) check() error {
	if err := s.checkNode(); err != nil {
		return err
	}
	if s.NotAfter <= s.NotBefore {
		return errors.New("it ends before it begins")
	}
	return nil
}

// checkNode is check without the times.
func (s Statement) checkNode() error {
	if s.Node == "" {
		return errors.New("it names no node")
	}
	if err := s.Origin().Check(); err != nil {
		return err
	}
	if s.Key == (PublicKey{}) {
		return errors.New("it has no key")
	}
	if len(s.Addresses) > MaxAddresses {
		return fmt.Errorf("it has %d addresses, and the limit is %d", len(s.Addresses), MaxAddresses)
	}
	for _, a := range s.Addresses {
		if err := clustermesh.CheckHost(a); err != nil {
			return err
		}
	}
	for _, p := range s.Prefixes {
		if err := clustermesh.CheckPrefix(p); err != nil {
			return err
		}
	}
	return nil
}

// Age is the stage of a statement's life.
type Age int

// The ages, in order. A Late statement should have been renewed. An Early one comes from a clock
// that is ahead of the receiver's.
const (
	Early Age = iota
	Fresh
	Late
	Expired
)

// LateFrom returns when the statement becomes Late, in Unix seconds.
func (s Statement) LateFrom() int64 { return s.NotBefore + (s.NotAfter-s.NotBefore)/2 }

// Age returns the age of the statement at a time.
func (s Statement) Age(now time.Time) Age {
	switch t := now.Unix(); {
	case t < s.NotBefore-int64(MaxAhead/time.Second):
		return Early
	case t >= s.NotAfter:
		return Expired
	case t >= s.LateFrom():
		return Late
	}
	return Fresh
}

// Satisfies reports whether the statement has everything that a node requests, the proof of its key included.
func (s Statement) Satisfies(want Statement) bool {
	return s.Matches(want) && (s.KeyProven || !want.KeyProven)
}

// Matches reports whether two statements certify the same for a node. It ignores times and the proof of the
// WireGuard key: an older signer leaves the proof out.
func (s Statement) Matches(t Statement) bool {
	return s.Origin() == t.Origin() && s.Key == t.Key && s.WireGuard == t.WireGuard && s.Locality == t.Locality &&
		slices.Equal(s.Addresses, t.Addresses) && slices.Equal(s.Prefixes, t.Prefixes)
}
