package stream

import (
	"context"
	"sync"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/notify"
)

const (
	maxQueued      = 4096
	maxQueuedBytes = 64 << 20
)

// sender is the stream to one neighbour. Its queue is bounded: a message that finds it full is
// dropped.
type sender struct {
	to     clustermesh.Origin
	ctx    context.Context // ends when the stream is no longer wanted
	cancel context.CancelFunc
	ready  notify.Signal

	mu    sync.Mutex
	queue [][]byte
	bytes int
}

func newSender(to clustermesh.Origin) *sender {
	ctx, cancel := context.WithCancel(context.Background())
	return &sender{to: to, ctx: ctx, cancel: cancel, ready: notify.New()}
}

// offer queues a message, and reports whether there was room. It never blocks.
func (s *sender) offer(message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= maxQueued || s.bytes+len(message) > maxQueuedBytes {
		return false
	}
	s.queue = append(s.queue, message)
	s.bytes += len(message)
	s.ready.Poke()
	return true
}

func (s *sender) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := s.queue
	s.queue, s.bytes = nil, 0
	return messages
}
