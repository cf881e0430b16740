package authority

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"

	"strait.io/strait/clustermesh"
)

// A daemon with a node key uses it as the key of its TLS certificate too, which carries the statement
// about the node. TLS 1.3 starts the bytes that it signs with 64 spaces and a context (RFC 8446 §4.4.3),
// and no record starts so. So a signature of one kind is never valid as the other.

// Signer returns the key in the form that crypto/tls needs.
func (k PrivateKey) Signer() crypto.Signer { return ed25519.NewKeyFromSeed(k[:]) }

// Errors of Proves, besides those of OpenStatement.
var (
	ErrShowsNothing = errors.New("it shows no statement")
	ErrNotItsKey    = errors.New("its statement names another key")
	ErrNotItsName   = errors.New("its statement is about another node")
)

// Proves returns an error unless a signed statement certifies a key for a node. The time does not matter:
// an expired statement still identifies the node.
func (ps Pins) Proves(o clustermesh.Origin, key PublicKey, signed []byte) error {
	if len(signed) == 0 {
		return ErrShowsNothing
	}
	s, err := OpenStatement(signed, ps)
	switch {
	case err != nil:
		return err
	case s.Origin() != o:
		return fmt.Errorf("%w: %s", ErrNotItsName, s.Origin())
	case s.Key != key:
		return ErrNotItsKey
	}
	return nil
}

// PeerTrust is how far a daemon at the other end of a connection is trusted to be the node that it claims to
// be.
type PeerTrust uint8

const (
	// Doubted: it may be that node. The records that it forwards are checked by their seals, as always, but
	// its connection is no sign that the node is alive.
	Doubted PeerTrust = iota
	// Trusted: it is that node; or no proof can be expected, because its cluster is not pinned, or its
	// daemon is older than such proofs.
	Trusted
	// Impostor: it is not that node, whose daemon would have proven its identity.
	Impostor
)

// PeerTrust decides whether a daemon is the node that it claims to be. Proven is whether it proved to have
// the key that the node's cluster certified; known is the node's record, nil if there is none.
func (ps Pins) PeerTrust(o clustermesh.Origin, proven bool, known *clustermesh.Node) PeerTrust {
	_, pinned := ps[o.Cluster]
	switch {
	case !pinned || proven:
		return Trusted
	case known == nil:
		return Doubted
	case known.Proves:
		return Impostor
	}
	return Trusted
}
