package stream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"strait.io/strait/clustermesh"
)

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 3, 1, 2, 3})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := ReadFrame(bytes.NewReader(b), nil)
		if err != nil {
			return
		}
		var back bytes.Buffer
		w := bufio.NewWriter(&back)
		if err := errors.Join(WriteFrame(w, frame), w.Flush()); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(b, back.Bytes()) {
			t.Fatalf("%x came back as %x", b, back.Bytes())
		}
	})
}

func TestFrameLimits(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff}
	if _, err := ReadFrame(bytes.NewReader(huge), nil); err == nil {
		t.Error("a frame of 4 GiB was begun")
	}
	// A peer that promises much and sends little costs little.
	promise := append([]byte{0, 0xff, 0xff, 0xff}, 1, 2, 3)
	if n := testing.AllocsPerRun(10, func() { _, _ = ReadFrame(bytes.NewReader(promise), nil) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
	if err := WriteFrame(bufio.NewWriter(io.Discard), make([]byte, maxFrame+1)); err == nil {
		t.Error("too large a frame was written")
	}
}

// TestQueueIsBounded: a peer that takes nothing costs a bounded amount, and dropping is told.
func TestQueueIsBounded(t *testing.T) {
	s := newSender(clustermesh.Origin{Cluster: "a", Node: "n2"})
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
