package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/notify"
)

const (
	maxQueued      = 4096
	maxQueuedBytes = 64 << 20
	// maxQueuedInAll bounds what waits for all neighbours together, in bytes.
	maxQueuedInAll = 256 << 20
)

// sender is the stream to one neighbour. Its queue is bounded: a message that finds it full is
// dropped.
type sender struct {
	to     clustermesh.Origin
	ctx    context.Context // ends when the stream is no longer wanted
	cancel context.CancelFunc
	ready  notify.Signal
	renew  notify.Signal // the stream must be reopened
	came   notify.Signal // the neighbour opened a connection
	work   sync.WaitGroup
	// total counts the bytes that wait, and are written now, for all neighbours.
	total *atomic.Int64

	mu     sync.Mutex
	queue  [][]byte
	bytes  int  // in queue
	taken  int  // being written
	drops  bool // since the last call of lost
	closed bool
}

func newSender(to clustermesh.Origin, total *atomic.Int64) *sender {
	ctx, cancel := context.WithCancel(context.Background())
	return &sender{to: to, ctx: ctx, cancel: cancel, ready: notify.New(), renew: notify.New(), came: notify.New(), total: total}
}

// close ends the stream, and drops what waits for it.
func (s *sender) close() {
	s.cancel()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.drop()
}

// offer queues a message, and reports whether there was room. It never blocks.
func (s *sender) offer(message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.queue) >= maxQueued || s.bytes+len(message) > maxQueuedBytes {
		s.drops = true
		return false
	}
	s.queue = append(s.queue, message)
	s.bytes += len(message)
	s.total.Add(int64(len(message)))
	s.ready.Poke()
	return true
}

// take returns what waits, to be written. The caller reports by written when that is over.
func (s *sender) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := s.queue
	s.taken += s.bytes
	s.queue, s.bytes = nil, 0
	return messages
}

// written notes that what was taken is in memory no more.
func (s *sender) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Add(-int64(s.taken))
	s.taken = 0
}

// lost reports whether messages were dropped since it was called last.
func (s *sender) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	drops := s.drops
	s.drops = false
	return drops
}

// drop empties the queue.
func (s *sender) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops = s.drops || len(s.queue) > 0
	s.total.Add(-int64(s.bytes))
	s.queue, s.bytes = nil, 0
}

func (s *sender) waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}
