package daemon

import (
	"context"
	"sync"
	"time"

	"strait.io/strait/internal/notify"
)

const (
	// chorePause is how long a chore waits after it was tried.
	chorePause = 5 * time.Second
	// reportedFailures is how many failures in a row are a Problem.
	reportedFailures = 2
)

// chore is what a node does while it leads, and tries until it works: bring about what is wanted.
// Nothing is wanted while that is zero.
type chore[T comparable] struct {
	poke notify.Signal

	mu   sync.Mutex
	want T
	err  error
	// failures counts those in a row. While an upgrade changes the rights, one is nothing.
	failures int
}

func newChore[T comparable]() *chore[T] { return &chore[T]{poke: notify.New()} }

// set sets what is wanted.
func (c *chore[T]) set(want T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.want != want {
		c.want, c.err, c.failures = want, nil, 0
		c.poke.Poke()
	}
}

// run does what is wanted, at once when that changes and again after each pause, until ctx is done.
func (c *chore[T]) run(ctx context.Context, do func(context.Context, T) error) error {
	var nothing T
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.poke:
		case <-time.After(chorePause):
		}
		c.mu.Lock()
		want := c.want
		c.mu.Unlock()
		if want == nothing {
			continue
		}
		err := do(ctx, want)
		if ctx.Err() != nil {
			return nil
		}
		c.tried(want, err)
	}
}

// tried notes the result of an attempt.
func (c *chore[T]) tried(want T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.want != want {
		return // something else is wanted by now
	}
	c.err = err
	if c.failures++; err == nil {
		c.failures = 0
	}
}

// failing returns why it does not work; nil until it has failed several times in a row.
func (c *chore[T]) failing() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures < reportedFailures {
		return nil
	}
	return c.err
}
