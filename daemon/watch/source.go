// Package watch follows what changes outside the daemon while it runs, such as files.
//
// A Source reads something again and again, and wakes the daemon's loop when it changed. A Value is
// the value of a file: the last good text stays in force, and a Problem reports a bad one.
// The package must not know what the values mean or who uses them.
package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/notify"
)

// filePause is how often a file is read. It is polled because a mounted Secret changes by swapping
// symlinks, at any depth.
const filePause = 2 * time.Second

// maxFile bounds a file, in bytes. A ConfigMap has at most 1 MiB.
const maxFile = 16 << 20

// Source is something outside the daemon that is read again and again. All goroutines can use it.
type Source[T any] struct {
	config Config[T]

	mu   sync.Mutex
	last T
	err  error
}

// Config is how to follow a Source.
type Config[T any] struct {
	// Read reads it. Without Read, the Source is always the zero T.
	Read func() (T, error)
	// Every is the pause between two reads.
	Every time.Duration
	// Same reports whether the loop needs no turn between two results of Read.
	Same func(a, b T) bool
	// Changed is poked after a change.
	Changed notify.Signal
}

// New reads the Source once. See Run.
func New[T any](c Config[T]) *Source[T] {
	s := &Source[T]{config: c}
	if c.Read != nil {
		s.last, s.err = c.Read()
	}
	return s
}

// File follows the text of a file; without a path it is empty.
func File(path string, changed notify.Signal) *Source[string] {
	if path == "" {
		return Files(nil, changed)
	}
	return Files(func() (string, error) { return Text(path) }, changed)
}

// Files follows what is read of several files as one text; without read it is empty.
func Files(read func() (string, error), changed notify.Signal) *Source[string] {
	return New(Config[string]{Read: read, Every: filePause, Same: func(a, b string) bool { return a == b }, Changed: changed})
}

// Text reads a file as File does.
func Text(path string) (string, error) {
	b, err := durable.Read(path, maxFile)
	return string(b), err
}

// Run reads the Source until ctx is done.
func (s *Source[T]) Run(ctx context.Context) error {
	if s.config.Read == nil {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.config.Every):
		}
		if s.Look() {
			s.config.Changed.Poke()
		}
	}
}

// Look reads the Source, and reports whether anything changed.
func (s *Source[T]) Look() bool {
	if s.config.Read == nil {
		return false
	}
	now, err := s.config.Read()
	s.mu.Lock()
	defer s.mu.Unlock()
	news := fmt.Sprint(err) != fmt.Sprint(s.err) || !s.config.Same(s.last, now)
	s.last, s.err = now, err
	return news
}

// Now returns what was read last, and why it cannot be read now.
func (s *Source[T]) Now() (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.err
}
