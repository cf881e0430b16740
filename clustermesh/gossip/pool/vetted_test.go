package pool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"strait.io/strait/internal/gossipkey"
)

// state is one of memberlist's messages on a connection, encrypted.
func state(t testing.TB, key gossipkey.Key, before, text []byte) []byte {
	t.Helper()
	out := append(bytes.Clone(before), typeEncrypt)
	out = binary.BigEndian.AppendUint32(out, uint32(1+12+len(text)+16))
	p, err := newPackets(gossipkey.Ring{key})
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, 12)
	beside := append(bytes.Clone(out[len(before):]), label...)
	return (*p.aeads.Load())[0].Seal(append(append(out, 1), nonce...), nonce, text, beside)
}

// pushPull is memberlist's message with members, and what its header announces.
func pushPull(t testing.TB, announced, members, user int) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteByte(typePushPull)
	enc := codec.NewEncoder(&b, &codec.MsgpackHandle{})
	if err := enc.Encode(struct {
		Nodes, UserStateLen int
		Join                bool
	}{announced, user, true}); err != nil {
		t.Fatal(err)
	}
	for range members {
		if err := enc.Encode(struct {
			Name        string
			Addr        []byte
			Port        uint16
			Meta        []byte
			Incarnation uint32
			State       int
			Vsn         []uint8
		}{}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestVetted: memberlist gets a message from a connection as it is if a daemon can have sent it, and
// nothing of any other.
func TestVetted(t *testing.T) {
	key := gossipkey.Key{1}
	packets, err := newPackets(gossipkey.Ring{{9}, key})
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte, labelled bool) (got []byte, large int, err error) {
		in, out := net.Pipe()
		defer in.Close()
		go func() {
			_ = out.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = out.Write(b)
			out.Close()
		}()
		refused := false
		v := &vetted{Conn: in, packets: packets, label: labelled, refused: func() { refused = true }, large: func() { large++ }}
		got, err = io.ReadAll(v)
		if refused != errors.Is(err, errUnusual) {
			t.Errorf("refused is %v, and the error %v", refused, err)
		}
		return got, large, err
	}
	var huge [5]byte
	huge[0] = typeEncrypt
	binary.BigEndian.PutUint32(huge[1:], stateBytes+1)
	for _, c := range []struct {
		what string
		text []byte
		raw  []byte
		ok   bool
	}{
		{what: "a ping", text: []byte{typePing, 0x80}, ok: true},
		{what: "an error", text: []byte{typeError, 0x80}, ok: true},
		{what: "no members", text: pushPull(t, 0, 0, 0), ok: true},
		{what: "members", text: pushPull(t, 300, 300, 0), ok: true},
		{what: "thousands of members", text: pushPull(t, 20_000, 20_000, 0), ok: true},
		{what: "a million members that are not there", text: pushPull(t, 1<<20, 3, 0)},
		{what: "fewer than no members", text: pushPull(t, -1, 3, 0)},
		{what: "20 MiB of user data", text: pushPull(t, 3, 3, 20<<20)},
		{what: "nothing, over which memberlist panics", text: []byte{}},
		{what: "a compressed message", text: []byte{typeCompress, 1}},
		{what: "a user's message", text: []byte{typeUser, 1}},
		{what: "a header cut off", text: pushPull(t, 3, 3, 0)[:8]},
		{what: "more than all members", raw: huge[:]},
		{what: "a message that is not encrypted", raw: []byte{typePing, 0x80, 0, 0, 0}},
		{what: "a message of another key", raw: state(t, gossipkey.Key{2}, nil, []byte{typePing, 0x80})},
	} {
		for _, labelled := range []bool{true, false} {
			var before []byte
			if labelled {
				before = labelHeader
			}
			sent := slices.Concat(before, c.raw)
			if c.raw == nil {
				sent = state(t, key, before, c.text)
			}
			got, large, err := read(sent, labelled)
			switch {
			case c.ok && (err != nil || !bytes.Equal(got, sent)):
				t.Errorf("%s: %d of %d bytes, %v", c.what, len(got), len(sent), err)
			case !c.ok && (!errors.Is(err, errUnusual) || len(got) > 0):
				t.Errorf("%s: %d bytes, %v", c.what, len(got), err)
			}
			if want := len(c.text) > freeState; want != (large == 1) {
				t.Errorf("%s: it was called large %d times", c.what, large)
			}
		}
	}
	if _, _, err := read(state(t, key, []byte("\xf4\x06strayt"), []byte{typePing}), true); !errors.Is(err, errUnusual) {
		t.Errorf("another label: %v", err)
	}
	if _, _, err := read(state(t, key, labelHeader, []byte{typePing, 0x80})[:30], true); err == nil || errors.Is(err, errUnusual) {
		t.Errorf("a message that is cut off: %v", err)
	}
}

// FuzzStateHeader: what is read of a header is what memberlist reads.
func FuzzStateHeader(f *testing.F) {
	f.Add(pushPull(f, 3, 0, 0)[1:])
	f.Add(pushPull(f, 1<<20, 0, 1<<20)[1:])
	f.Add(pushPull(f, -1, 0, -1)[1:])
	f.Fuzz(func(t *testing.T, b []byte) {
		nodes, user, ok := stateHeader(b)
		if !ok {
			return
		}
		var h struct {
			Nodes, UserStateLen int
			Join                bool
		}
		if err := codec.NewDecoder(bytes.NewReader(b), &codec.MsgpackHandle{}).Decode(&h); err == nil && (h.Nodes != nodes || h.UserStateLen != user) {
			t.Errorf("%x: %d, %d, and memberlist reads %+v", b, nodes, user, h)
		}
	})
}

// TestBudget: no more than a second's budget is taken at once, and it is filled again with time.
func TestBudget(t *testing.T) {
	now := time.Now()
	b := newBudgets(100, 10)
	if !b.take(false, 10, now) || b.take(false, 1, now) {
		t.Error("strangers can take more than is theirs")
	}
	if !b.take(true, 90, now) || b.take(true, 11, now) || !b.take(true, 10, now) {
		t.Error("members do not have a budget of their own")
	}
	if now = now.Add(time.Second / 2); b.take(false, 6, now) || !b.take(false, 5, now) {
		t.Error("half of the budget is not there after half a second")
	}
	if now = now.Add(time.Hour); b.take(false, 11, now) || !b.take(false, 10, now) {
		t.Error("the budget grows beyond a second's")
	}
}
