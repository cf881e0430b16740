package pool

import (
	"bytes"
	"crypto/rand"
	"testing"

	"strait.io/strait/internal/gossipkey"
)

// sealed is a datagram as memberlist makes it.
func sealed(t testing.TB, key gossipkey.Key, text []byte) []byte {
	t.Helper()
	p, err := newPackets(gossipkey.Ring{key})
	if err != nil {
		t.Fatal(err)
	}
	aead := (*p.aeads.Load())[0]
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	out := append(bytes.Clone(labelHeader), 1)
	return aead.Seal(append(out, nonce...), nonce, text, []byte(label))
}

func TestPackets(t *testing.T) {
	key, second, other := gossipkey.Key{1}, gossipkey.Key{2}, gossipkey.Key{3}
	p, err := newPackets(gossipkey.Ring{key, second})
	if err != nil {
		t.Fatal(err)
	}
	good := sealed(t, key, []byte("ping"))
	broken := bytes.Clone(good)
	broken[len(broken)-1] ^= 1
	for _, c := range []struct {
		what   string
		packet []byte
		why    Refusal
	}{
		{"ours", good, ""}, {"of the second key", sealed(t, second, []byte("ping")), ""}, {"empty", nil, NotOurs}, {"a label alone", labelHeader, NotOurs}, {"without a label", good[8:], NotOurs},
		{"changed", broken, OtherKey}, {"of another key", sealed(t, other, []byte("ping")), OtherKey}, {"cut off", good[:len(good)-1], OtherKey},
	} {
		if why := p.why(c.packet); why != c.why {
			t.Errorf("a datagram that is %s: refused for %q, want %q", c.what, why, c.why)
		}
	}
}

func FuzzPackets(f *testing.F) {
	key := gossipkey.Key{1}
	good := sealed(f, key, []byte("ping"))
	f.Add(good)
	f.Add([]byte{244, 6})
	p, err := newPackets(gossipkey.Ring{key, {2}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p.why(b) == "" && !bytes.Equal(b[9:], good[9:]) {
			t.Errorf("%x was not encrypted with the key", b)
		}
	})
}
