package key

import (
	"crypto/ed25519"
	"crypto/sha512"
	"crypto/subtle"
	"fmt"
	"io"
	"slices"

	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"
)

// A WireGuard key is made for key agreement, which proves something only to the other end. XEdDSA signs with
// the same key, so that everybody can check who has it (XEd25519 of signal.org/docs/specifications/xeddsa).

// Signature is an XEdDSA signature.
type Signature [ed25519.SignatureSize]byte

// nonce is the prefix of what a nonce is the hash of (hash_1 of the specification). No encoding of a point
// begins with it, so that no other hash here has the same input.
var nonce = append([]byte{0xfe}, slices.Repeat([]byte{0xff}, Size-1)...)

// Sign signs a message. Its nonce depends on the key, the message and random, so that it is not repeated even
// if random is not.
func (k Private) Sign(random io.Reader, message []byte) (Signature, error) {
	var z [64]byte
	if _, err := io.ReadFull(random, z[:]); err != nil {
		return Signature{}, fmt.Errorf("read randomness: %w", err)
	}
	a, public := k.edwards()
	r := scalar(nonce, a.Bytes(), message, z[:])
	point := new(edwards25519.Point).ScalarBaseMult(r).Bytes()
	s := edwards25519.NewScalar().MultiplyAdd(scalar(point, public, message), a, r)
	return Signature(slices.Concat(point, s.Bytes())), nil
}

// edwards returns the private scalar and the public point of the key on the Edwards curve. A key on the
// Montgomery curve has no sign: the point is the one with sign 0, and the scalar belongs to that.
func (k Private) edwards() (*edwards25519.Scalar, []byte) {
	a := must(edwards25519.NewScalar().SetBytesWithClamping(k[:]))
	public := new(edwards25519.Point).ScalarBaseMult(a).Bytes()
	b := a.Bytes()
	subtle.ConstantTimeCopy(int(public[Size-1]>>7), b, edwards25519.NewScalar().Negate(a).Bytes())
	public[Size-1] &= 0x7f
	return must(edwards25519.NewScalar().SetCanonicalBytes(b)), public
}

func scalar(parts ...[]byte) *edwards25519.Scalar {
	sum := sha512.Sum512(slices.Concat(parts...))
	return must(edwards25519.NewScalar().SetUniformBytes(sum[:]))
}

// must panics on an error. It is for input of a wrong length, which an array cannot have.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Verify reports whether the owner of the key signed a message. It refuses keys without an owner: those that
// WireGuard never makes, and points of low order, for which everybody can sign.
func (k Public) Verify(message []byte, s Signature) bool {
	public, ok := k.edwards()
	return ok && ed25519.Verify(public, message, s[:])
}

// edwards returns the point of the key on the Edwards curve that has sign 0: y = (u-1)/(u+1).
func (k Public) edwards() ([]byte, bool) {
	u := must(new(field.Element).SetBytes(k[:]))
	if Public(u.Bytes()) != k {
		return nil, false // another encoding of the same key
	}
	one := new(field.Element).One()
	y := new(field.Element).Add(u, one)
	y.Multiply(new(field.Element).Subtract(u, one), y.Invert(y))
	point, err := new(edwards25519.Point).SetBytes(y.Bytes())
	if err != nil {
		return nil, false // on the twist
	}
	if new(edwards25519.Point).MultByCofactor(point).Equal(edwards25519.NewIdentityPoint()) == 1 {
		return nil, false
	}
	return y.Bytes(), true
}
