package pool

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"testing"

	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
)

// sealed is a datagram as memberlist makes it. The nonce depends on the text alone, so that each process
// that fuzzes has the same seeds.
func sealed(t testing.TB, key gossipkey.Key, text []byte) []byte {
	t.Helper()
	p, err := newPackets(gossipkey.Ring{key})
	if err != nil {
		t.Fatal(err)
	}
	aead := (*p.aeads.Load())[0]
	sum := sha256.Sum256(text)
	nonce := sum[:aead.NonceSize()]
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
		why    member.Refusal
	}{
		{"ours", good, ""}, {"of the second key", sealed(t, second, []byte("ping")), ""}, {"empty", nil, member.NotOurs}, {"a label alone", labelHeader, member.NotOurs}, {"without a label", good[8:], member.NotOurs},
		{"changed", broken, member.OtherKey}, {"of another key", sealed(t, other, []byte("ping")), member.OtherKey}, {"cut off", good[:len(good)-1], member.OtherKey},
	} {
		if why := p.why(c.packet); why != c.why {
			t.Errorf("a datagram that is %s: refused for %q, want %q", c.what, why, c.why)
		}
	}
}

// TestUnusualPackets: what the gossip key encrypted is passed on only if a daemon can have sent it.
func TestUnusualPackets(t *testing.T) {
	key := gossipkey.Key{1}
	p, err := newPackets(gossipkey.Ring{key})
	if err != nil {
		t.Fatal(err)
	}
	ping := []byte{typePing, 0x80}
	crc := func(b []byte) []byte { return append([]byte{typeCRC, 0, 0, 0, 0}, b...) }
	for _, c := range []struct {
		what     string
		text     []byte
		messages int
	}{
		{"a ping", ping, 1}, {"with a checksum", crc(ping), 1}, {"two in one", compound(ping, ping), 2}, {"255 in one", compound(slices.Repeat([][]byte{ping}, 255)...), 255},
		{"both", crc(compound(ping, ping)), 2}, {"of a type to come", []byte{77}, 1},
		{"empty", nil, 0}, {"a checksum of nothing", crc(nil), 0}, {"a checksum of a checksum", crc(crc(ping)), 0},
		{"compressed", []byte{typeCompress, 1}, 0}, {"compressed in a compound", compound(ping, []byte{typeCompress}), 0},
		{"compressed with a checksum", crc([]byte{typeCompress}), 0}, {"encrypted twice", []byte{typeEncrypt, 1}, 0},
		{"a compound in a compound", compound(compound(ping)), 0}, {"a checksum in a compound", compound(crc(ping)), 0},
		{"255 of nothing", compound(slices.Repeat([][]byte{nil}, 255)...), 0}, {"a compound of none", compound(), 0},
		{"cut off", compound(ping, ping)[:6], 0}, {"with something after it", append(compound(ping), 1), 0}, {"a compound alone", []byte{typeCompound}, 0},
		{"a user's", []byte{typeUser, 1}, 0}, {"members", []byte{typePushPull}, 0}, {"too long", make([]byte, maxText+1), 0},
	} {
		n, why := p.read(sealed(t, key, c.text))
		if want := map[bool]member.Refusal{true: member.Unusual}[c.messages == 0]; n != c.messages || why != want {
			t.Errorf("a datagram that is %s: %d messages, refused for %q, want %d", c.what, n, why, c.messages)
		}
	}
	// memberlist panics over such a padding.
	padded := sealed(t, key, bytes.Repeat([]byte{255}, 16))
	if padded[len(labelHeader)] = 0; p.why(padded) != member.Unusual {
		t.Error("a padded text is passed on")
	}
}

// compound is a text with parts, as memberlist makes it.
func compound(parts ...[]byte) []byte {
	out := []byte{typeCompound, byte(len(parts))}
	for _, p := range parts {
		out = binary.BigEndian.AppendUint16(out, uint16(len(p)))
	}
	return append(out, bytes.Join(parts, nil)...)
}

// FuzzPackets: what was not encrypted with the key is refused, whatever it is. FuzzUsual: what was
// encrypted holds as many messages as memberlist finds, none of which holds others.
func FuzzPackets(f *testing.F) {
	key := gossipkey.Key{1}
	good := sealed(f, key, []byte("ping"))
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{244, 6})
	p, err := newPackets(gossipkey.Ring{key, {2}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p.why(b) == "" && !bytes.Equal(b, good) {
			t.Errorf("%x was not encrypted with the key", b)
		}
	})
}

func FuzzUsual(f *testing.F) {
	ping := []byte{typePing, 0x80}
	for _, text := range [][]byte{ping, compound(ping, ping), compound(compound(ping)), {typeCompress, 1}, {typeCRC, 0, 0, 0, 0, 0}, {typeCompound, 255}} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := usual(text); got != 0 {
			most := handled(text, 3)
			if got == most {
				return
			}
			t.Errorf("%x: %d messages, and memberlist handles %d", text, got, most)
		}
	})
}

// handled is how many messages memberlist handles of a text, up to a depth; -1 if there is more below.
func handled(text []byte, depth int) (n int) {
	if len(text) >= 5 && text[0] == typeCRC && depth == 3 {
		text = text[5:]
	}
	if len(text) == 0 || text[0] != typeCompound {
		if len(text) > 0 && text[0] == typeCompress {
			return -1
		}
		return 1
	}
	if depth == 0 {
		return -1
	}
	text = text[1:]
	parts := int(text[0])
	lengths, rest := text[1:1+2*parts], text[1+2*parts:]
	for i := range parts {
		size := int(binary.BigEndian.Uint16(lengths[2*i:]))
		n += handled(rest[:size], depth-1)
		rest = rest[size:]
	}
	return n
}
