package authority

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// PublicKey is an Ed25519 public key (RFC 8032).
type PublicKey [ed25519.PublicKeySize]byte

// PrivateKey is an Ed25519 private key: its seed. It never prints.
type PrivateKey [ed25519.SeedSize]byte

// Signature is an Ed25519 signature.
type Signature [ed25519.SignatureSize]byte

// Generate makes a private key from random.
func Generate(random io.Reader) (PrivateKey, error) {
	var k PrivateKey
	if _, err := io.ReadFull(random, k[:]); err != nil {
		return PrivateKey{}, fmt.Errorf("read randomness: %w", err)
	}
	return k, nil
}

// Public computes the public key.
func (k PrivateKey) Public() PublicKey {
	return PublicKey(ed25519.NewKeyFromSeed(k[:]).Public().(ed25519.PublicKey))
}

// Base64 returns the text for a key file. Call it only to write such a file.
func (k PrivateKey) Base64() string { return base64.StdEncoding.EncodeToString(k[:]) }

// String hides the key from logs.
func (k PrivateKey) String() string { return "(private key)" }

// GoString hides the key from %#v.
func (k PrivateKey) GoString() string { return k.String() }

// ParsePrivate reads the text of a private key file. Its errors never contain the input.
func ParsePrivate(text string) (PrivateKey, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != len(PrivateKey{}) {
		return PrivateKey{}, errors.New("not an Ed25519 key: want 32 bytes in base64")
	}
	return PrivateKey(b), nil
}

// String returns the key in base64.
func (k PublicKey) String() string { return base64.StdEncoding.EncodeToString(k[:]) }

// MarshalText returns the key in base64.
func (k PublicKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a key in base64.
func (k *PublicKey) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(b) != len(k) {
		return fmt.Errorf("%q is not a public key: want 32 bytes in base64", text)
	}
	*k = PublicKey(b)
	return nil
}

// Fingerprint is a short form for people to compare, in the style of ssh-keygen.
func (k PublicKey) Fingerprint() string {
	sum := sha256.Sum256(k[:])
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// context separates the kinds of signed messages: a signature of one kind is never valid for another.
type context string

const (
	aboutNode    context = "strait node statement 1\x00"
	aboutRecord  context = "strait record 1\x00"
	aboutRequest context = "strait statement request 1\x00"
	aboutSigner  context = "strait signer 1\x00"
	aboutKey     context = "strait WireGuard key 1\x00"
)

func (k PrivateKey) sign(c context, message []byte) Signature {
	return Signature(ed25519.Sign(ed25519.NewKeyFromSeed(k[:]), append([]byte(c), message...)))
}

func (k PublicKey) verify(c context, message []byte, s Signature) bool {
	return ed25519.Verify(k[:], append([]byte(c), message...), s[:])
}
