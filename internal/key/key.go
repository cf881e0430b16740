// Package key holds WireGuard keys as types that cannot be mixed up or printed by accident, and signs with
// them.
//
// Pure leaf: bytes in, text and signatures out. It does not know where keys are stored or who uses them.
package key

import (
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Size is the length of a Curve25519 key in bytes.
const Size = 32

// Public is a WireGuard public key. It prints as WireGuard's base64 text.
type Public [Size]byte

// Private is a WireGuard private key. It never prints.
type Private [Size]byte

// Generate makes a private key from random, clamped as RFC 7748 §5 requires.
func Generate(random io.Reader) (Private, error) {
	var k Private
	if _, err := io.ReadFull(random, k[:]); err != nil {
		return Private{}, fmt.Errorf("read randomness: %w", err)
	}
	k[0] &= 248
	k[31] = k[31]&127 | 64
	return k, nil
}

// ParsePrivate reads the base64 text of a private key file. Its errors never contain the input.
func ParsePrivate(text string) (Private, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != Size {
		return Private{}, errors.New("not a WireGuard key: want 32 bytes in base64")
	}
	return Private(b), nil
}

// Public computes the public key.
func (k Private) Public() Public {
	priv, err := ecdh.X25519().NewPrivateKey(k[:])
	if err != nil {
		panic(err) // only for a wrong length, which an array cannot have
	}
	return Public(priv.PublicKey().Bytes())
}

// Base64 returns the text for a key file or for the kernel. Nothing else should call it.
func (k Private) Base64() string { return base64.StdEncoding.EncodeToString(k[:]) }

// String hides the key from logs.
func (k Private) String() string { return "(private key)" }

// GoString hides the key from %#v.
func (k Private) GoString() string { return k.String() }

func (k Public) String() string { return base64.StdEncoding.EncodeToString(k[:]) }

// IsZero reports whether no key is set.
func (k Public) IsZero() bool { return k == Public{} }

// MarshalText writes base64.
func (k Public) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads base64.
func (k *Public) UnmarshalText(text []byte) error {
	p, err := ParsePrivate(string(text))
	*k = Public(p)
	return err
}
