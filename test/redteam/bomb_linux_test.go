package redteam

import (
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bombs are texts that memberlist would unpack without end: of as many messages in messages as fit.
var bombs = map[string]func() []byte{
	"compressed": func() []byte {
		inner := compound(slices.Repeat([][]byte{compound(slices.Repeat([][]byte{{}}, 255)...)}, 255)...)
		return compound(slices.Repeat([][]byte{compressed(inner)}, 56)...)
	},
	"nested": func() []byte {
		inner := compound(slices.Repeat([][]byte{{}}, 255)...)
		return compound(slices.Repeat([][]byte{compound(slices.Repeat([][]byte{inner}, 10)...)}, 8)...)
	},
	"pings": func() []byte { // which all want an answer
		return compound(slices.Repeat([][]byte{append([]byte{0}, fields(field{"SeqNo", 1}, field{"Node", ""})...)}, 255)...)
	},
}

// compound is one message that holds others.
func compound(parts ...[]byte) []byte {
	out := []byte{typeCompound, byte(len(parts))}
	for _, p := range parts {
		out = binary.BigEndian.AppendUint16(out, uint16(len(p)))
	}
	return append(out, bytes.Join(parts, nil)...)
}

// compressed is one message that holds another, compressed.
func compressed(text []byte) []byte {
	var b bytes.Buffer
	z := lzw.NewWriter(&b, lzw.LSB, 8)
	_, _ = z.Write(text)
	_ = z.Close()
	return append([]byte{typeCompress}, fields(field{"Algo", 0}, field{"Buf", b.Bytes()})...)
}

// blasts is how often each bomb is sent.
const blasts = 20

// TestBomb: a holder of the gossip key sends messages that unpack to millions, in datagrams and on
// connections. They cost little more than as many bytes of garbage, and members hear each other meanwhile.
func TestBomb(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, nil)
	w.west.hears("east", 1)
	k := w.keyholder(origin("mallory", "x"), "")
	to := gossipOf(westNumber)
	garbage := w.west.costs(func() {
		for range blasts {
			k.throwsRaw(to, bytes.Repeat([]byte{7}, 64_000))
		}
	})
	t.Logf("garbage: %s", garbage)
	for what, make := range bombs {
		text := make()
		for how, send := range map[string]func(to netip.AddrPort, text []byte){"a datagram": k.throws, "a connection": k.tells} {
			took := w.west.costs(func() {
				for range blasts {
					send(to, text)
				}
			})
			t.Logf("%s in %s: %d bytes, %s", what, how, len(text), took)
			if most := 10*garbage + 300*time.Millisecond; took > most {
				t.Errorf("%s in %s: %d times %d bytes take %s of processor time, and garbage takes %s", what, how, blasts, len(text), took, garbage)
			}
		}
	}
	w.west.saysNot("STR5103")
	w.east.saysNot("STR5103")
	w.west.hears("east", 1)
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	w.west.balances(moved)
}

// costs returns the processor time that a daemon takes for what is sent to it.
func (m *member) costs(send func()) time.Duration {
	m.w.Helper()
	before := m.processor()
	send()
	time.Sleep(time.Second) // what it does not do at once, it does in the background
	return m.processor() - before
}

// processor returns how long a daemon has computed.
func (m *member) processor() time.Duration {
	m.w.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.pid))
	m.w.must(err)
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	m.w.must(err1, err2)
	return time.Duration(user+system) * 10 * time.Millisecond
}
