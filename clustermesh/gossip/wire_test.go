package gossip

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 3, 1, 2, 3})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := readFrame(bytes.NewReader(b), nil)
		if err != nil {
			return
		}
		var back bytes.Buffer
		w := bufio.NewWriter(&back)
		if err := errors.Join(writeFrame(w, frame), w.Flush()); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(b, back.Bytes()) {
			t.Fatalf("%x came back as %x", b, back.Bytes())
		}
	})
}

func TestFrameLimits(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff}
	if _, err := readFrame(bytes.NewReader(huge), nil); err == nil {
		t.Error("a frame of 4 GiB was begun")
	}
	// A peer that promises much and sends little costs little.
	promise := append([]byte{0, 0xff, 0xff, 0xff}, 1, 2, 3)
	if n := testing.AllocsPerRun(10, func() { _, _ = readFrame(bytes.NewReader(promise), nil) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
	if err := writeFrame(bufio.NewWriter(io.Discard), make([]byte, maxFrame+1)); err == nil {
		t.Error("too large a frame was written")
	}
}

func someEntries(t testing.TB, n int) (entries []replica.Entry) {
	for i := range n {
		e, err := replica.NewEntry(clustermesh.Record{
			Origin: node("a", "n"+string(rune('a'+i%26))), Stamp: clustermesh.Stamp{Epoch: uint64(i + 1)},
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
	if err := saveState(dir, entries); err != nil {
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

func FuzzParseMember(f *testing.F) {
	f.Add("us-east/n1/kf12oi")
	f.Add("//")
	f.Fuzz(func(t *testing.T, name string) {
		m, err := parseMember(name)
		if err != nil {
			return
		}
		if back, err := parseMember(m.String()); err != nil || back != m {
			t.Fatalf("%q: %v became %v: %v", name, m, back, err)
		}
	})
}

// TestQueueIsBounded: a peer that takes nothing costs a bounded amount, and dropping is told.
func TestQueueIsBounded(t *testing.T) {
	s := newSender(node("a", "n2"), func() {})
	taken := 0
	for range maxQueued + 10 {
		if s.offer([]byte("x")) {
			taken++
		}
	}
	if taken != maxQueued {
		t.Errorf("%d messages queued, want %d", taken, maxQueued)
	}
	if n := len(s.take()); n != maxQueued || !s.offer([]byte("x")) {
		t.Errorf("after taking %d there is no room", n)
	}
	s.take()
	if s.offer(make([]byte, maxQueuedBytes+1)) {
		t.Error("too many bytes were queued")
	}
}

// TestForeignStream: what is neither memberlist nor ours, or says nothing, is let go, and gossip goes on.
func TestForeignStream(t *testing.T) {
	c := config(node("a", "n1"))
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
	other := start(t, config(node("a", "n2"), c.Bind))
	other.say(2)
	eventually(t, "gossip goes on", func() bool { return d.said(other.cfg.Self) == 2 })
	if p := d.Problems(); len(p) != 0 {
		t.Errorf("noise is no problem: %v", p)
	}
}

func TestMemberLog(t *testing.T) {
	var key, udp, text string
	var out strings.Builder
	m := &memberLog{
		log:      slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		wrongKey: func(a string) { key = a }, noUDP: func(p string) { udp = p },
	}
	m.logger().Printf("[ERR] memberlist: Decrypt packet failed: %v from=%s", "No installed keys could decrypt the message", "192.0.2.7:7946")
	m.logger().Printf("[WARN] memberlist: Was able to connect to %s over TCP but UDP probes failed, network may be misconfigured", "a/n1/x")
	if text = out.String(); key != "192.0.2.7" || udp != "a/n1/x" || strings.Count(text, "level=DEBUG") != 2 {
		t.Errorf("key %q, udp %q, log %q", key, udp, text)
	}
}
