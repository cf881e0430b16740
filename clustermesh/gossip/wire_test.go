package gossip

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

func someEntries(t testing.TB, n int) (entries []replica.Entry) {
	for i := range n {
		e, err := replica.NewEntry(clustermesh.Record{
			Origin: origin("a", "n"+string(rune('a'+i%26))), Stamp: clustermesh.Stamp{Epoch: uint64(i + 1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

// encodeState is a state file's bytes.
func encodeState(t testing.TB, entries []replica.Entry) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := saveState(t.Context(), dir, entries); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStateRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, saveChunk, 2*saveChunk + 1} {
		got, err := decodeState(encodeState(t, someEntries(t, n)))
		if err != nil || len(got) != n {
			t.Fatalf("%d entries became %d: %v", n, len(got), err)
		}
		for _, e := range got {
			if !reflect.DeepEqual(e, e.Held()) {
				t.Fatalf("%s came with bytes that can be made again", e.Record.Origin)
			}
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add(encodeState(f, someEntries(f, 3)))
	f.Add([]byte(stateMagic + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := decodeState(b)
		if err != nil {
			return
		}
		encodeState(t, entries)
	})
}

// TestForeignStream: what is neither memberlist nor ours, or says nothing, is let go, and gossip goes on.
func TestForeignStream(t *testing.T) {
	c := config(origin("a", "n1"))
	d := start(t, c)
	eventually(t, "it listens", func() bool {
		conn, err := net.Dial("tcp", c.Bind.String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff garbage", "\x16"} {
		conn, err := net.Dial("tcp", c.Bind.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the stream was not closed", text)
		}
		conn.Close()
	}
	other := start(t, config(origin("a", "n2"), c.Bind))
	other.say(2)
	eventually(t, "gossip goes on", func() bool { return d.said(other.cfg.Self) == 2 })
	if p := d.Problems(); len(p) != 0 {
		t.Errorf("noise is no problem: %v", p)
	}
}
