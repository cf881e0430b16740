package stream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
	"strait.io/strait/internal/gossipkey"
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
	s := newSender(clustermesh.Origin{Cluster: "a", Node: "n2"}, new(atomic.Int64))
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

// TestQueuesInAll: peers that take nothing cost a bounded amount together, and do not take the room of
// one that does.
func TestQueuesInAll(t *testing.T) {
	s, err := New(member.Peer{}, gossipkey.Ring{{}}, Credentials{}, nil, Services{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	origin := func(i int) clustermesh.Origin {
		return clustermesh.Origin{Cluster: "a", Node: clustermesh.NodeName(fmt.Sprintf("n%d", i))}
	}
	neighbours := map[clustermesh.Origin]bool{}
	for i := range 11 {
		neighbours[origin(i)] = true
	}
	s.Follow(neighbours)
	s.Send(origin(0), []byte("small"))
	message := make([]byte, 8<<20) // one array, which the queues share
	for n := range 10 * 10 {
		s.Send(origin(1+n%10), message)
		if got := s.total.Load(); got > maxQueuedInAll {
			t.Fatalf("%d bytes wait after %d messages", got, n)
		}
	}
	small := s.senders[origin(0)]
	if got := small.take(); len(got) != 1 {
		t.Errorf("%d messages wait for the peer that takes them, want 1", len(got))
	}
	before := s.total.Load()
	if small.written(); s.total.Load() != before-int64(len("small")) {
		t.Errorf("what was written still counts: %d of %d bytes", s.total.Load(), before)
	}
	for o := range neighbours {
		neighbours[o] = false
	}
	if s.Follow(neighbours); s.total.Load() != 0 {
		t.Errorf("%d bytes wait for no reader", s.total.Load())
	}
}
