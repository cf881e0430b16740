package key_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/internal/key"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSignKnown: the vector of the authors of XEdDSA (xeddsa_fast_test of libsignal's C code).
func TestSignKnown(t *testing.T) {
	k := key.Private{8: 189, 31: 64}
	message := make([]byte, 200)
	want := key.Signature(unhex(t, "11c7f3e6c4df9e8a5150e1db3b30f92de3a3b3aa438656545fa7390f4bcc7bb2"+
		"6c431d9e90643e4f0eaa0e9c557766fa69ada576d63dcaf2ac326c11d0b97702"))
	if !k.Public().Verify(message, want) {
		t.Error("the known signature is refused")
	}
	got, err := k.Sign(bytes.NewReader(make([]byte, 64)), message)
	if err != nil || got != want {
		t.Errorf("signed %x, %v", got, err)
	}
}

// TestSign: what a key signs is its own: another key, another message and each flipped bit are refused.
func TestSign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 32, 32)
		k, other := key.Private(b.Draw(t, "key")), key.Private(b.Draw(t, "other key"))
		message := rapid.SliceOf(rapid.Byte()).Draw(t, "message")
		s, err := k.Sign(bytes.NewReader(rapid.SliceOfN(rapid.Byte(), 64, 64).Draw(t, "random")), message)
		if err != nil || !k.Public().Verify(message, s) {
			t.Fatalf("its signature is refused: %v", err)
		}
		bit := rapid.IntRange(0, 511).Draw(t, "bit")
		flipped := s
		flipped[bit/8] ^= 1 << (bit % 8)
		if k.Public().Verify(message, flipped) {
			t.Error("a flipped bit is accepted")
		}
		if k.Public().Verify(append(slices.Clone(message), 0), s) {
			t.Error("another message is accepted")
		}
		if other.Public() != k.Public() && other.Public().Verify(message, s) {
			t.Error("another key's signature is accepted")
		}
	})
}

func TestSignWithoutRandomness(t *testing.T) {
	if _, err := (key.Private{1}).Sign(strings.NewReader("short"), nil); err == nil {
		t.Error("signed without randomness")
	}
}

// TestVerifyNobodysKey: for a point of low order, a signature with s = 0 can be valid for everybody. Those
// points, and other encodings of a key, prove nothing.
func TestVerifyNobodysKey(t *testing.T) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	of := func(n *big.Int) (k key.Public) {
		n.FillBytes(k[:])
		slices.Reverse(k[:])
		return k
	}
	order8 := key.Public(unhex(t, "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"))
	other8 := key.Public(unhex(t, "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"))
	low := []key.Public{{}, {1}, of(new(big.Int).Sub(p, big.NewInt(1))), of(p), of(new(big.Int).Add(p, big.NewInt(1))), order8, other8}
	// R is each point of low order on the Edwards curve, of which one is that of R = -hA.
	points := []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	}
	for _, k := range low {
		for _, r := range points {
			for m := range byte(64) {
				if s := key.Signature(append(unhex(t, r), make([]byte, 32)...)); k.Verify([]byte{m}, s) {
					t.Errorf("key %s proves something with R %s", k, r)
				}
			}
		}
	}

	k := key.Private{9}
	s, err := k.Sign(rand.Reader, []byte("message"))
	if err != nil {
		t.Fatal(err)
	}
	alias := k.Public()
	alias[31] |= 0x80
	if alias.Verify([]byte("message"), s) {
		t.Error("the key with its unused bit set proves something")
	}
	for n := range byte(50) { // half of them are on no point of the curve
		if (key.Public{n}).Verify([]byte("message"), s) {
			t.Errorf("key %d proves something", n)
		}
	}
}

// FuzzVerify: whatever arrives as a key, a message and a signature, only what the key signed is accepted.
func FuzzVerify(f *testing.F) {
	private, message := key.Private{1, 2, 3}, []byte("a message")
	honest, public := must(private.Sign(bytes.NewReader(make([]byte, 64)), message)), private.Public()
	f.Add(public[:], message, honest[:])
	f.Add(make([]byte, 32), message, honest[:])
	f.Add(public[:], message, make([]byte, 64))
	f.Add(public[:], []byte{}, honest[:])
	f.Fuzz(func(t *testing.T, k, m, s []byte) {
		if len(k) != key.Size || len(s) != len(key.Signature{}) {
			return
		}
		if key.Public(k).Verify(m, key.Signature(s)) && !(bytes.Equal(k, public[:]) && bytes.Equal(m, message) && bytes.Equal(s, honest[:])) {
			t.Fatalf("key %x accepts %x of %x", k, s, m)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func BenchmarkVerify(b *testing.B) {
	k, message := key.Private{1}, make([]byte, 150)
	s := must(k.Sign(rand.Reader, message))
	public := k.Public()
	for b.Loop() {
		if !public.Verify(message, s) {
			b.Fatal("refused")
		}
	}
}
