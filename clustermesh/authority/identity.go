package authority

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"

	"strait.io/strait/clustermesh"
)

// A daemon with a node key uses it as the key of its TLS certificate too, and shows the statement about
// itself there. TLS 1.3 signs other bytes than records are (RFC 8446 §4.4.3: 64 spaces and a context
// come first), so a signature of one kind is never one of the other.

// Signer returns the key in the form that TLS wants.
func (k PrivateKey) Signer() crypto.Signer { return ed25519.NewKeyFromSeed(k[:]) }

// Errors of Proves, besides those of OpenStatement.
var (
	ErrShowsNothing = errors.New("it shows no statement")
	ErrNotItsKey    = errors.New("its statement names another key")
	ErrNotItsName   = errors.New("its statement is about another node")
)

// Proves returns an error unless a signed statement says that a key is that of a node. The time does not
// matter: an expired statement still says who the node was.
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

// Belief is how far a daemon at the other end of a connection is believed to be the node that it claims
// to be.
type Belief uint8

const (
	// Doubted: it may be that node. What it passes on is judged by its seals, as everything is, but it is
	// no sign that the node is there.
	Doubted Belief = iota
	// Believed: it is that node; or nothing better can be had, because its cluster is not pinned, or its
	// daemon is older than such proofs.
	Believed
	// Impostor: it is not that node, whose daemon would have proven it.
	Impostor
)

// Believe decides that of a daemon that claims to be a node. Proven says whether it proved to have the
// key that its cluster stated; known is what the node's record says of it, nil if there is none.
func (ps Pins) Believe(o clustermesh.Origin, proven bool, known *clustermesh.Node) Belief {
	_, pinned := ps[o.Cluster]
	switch {
	case !pinned || proven:
		return Believed
	case known == nil:
		return Doubted
	case known.Proves:
		return Impostor
	}
	return Believed
}
