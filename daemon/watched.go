package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/notify"
)

// watchPause is how often a watched file is read. It is polled because a mounted Secret changes by
// swapping symlinks, at any depth.
const watchPause = 2 * time.Second

// watched is a file that is read again when it changes. While it cannot be read, its last text stays
// in force. Without a path it is empty.
type watched struct {
	path    string
	changed notify.Signal

	mu    sync.Mutex
	last  string
	read  bool
	cause error // why it cannot be read now
}

// watchFile reads the file once. See run.
func watchFile(path string, changed notify.Signal) *watched {
	w := &watched{path: path, changed: changed}
	w.look()
	return w
}

// run polls the file until ctx is done.
func (w *watched) run(ctx context.Context) error {
	if w.path == "" {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchPause):
		}
		if w.look() {
			w.changed.Poke()
		}
	}
}

// maxWatched bounds a file that is watched, in bytes. A ConfigMap has at most 1 MiB.
const maxWatched = 16 << 20

// look reads the file and reports whether anything changed.
func (w *watched) look() bool {
	if w.path == "" {
		return false
	}
	b, err := durable.Read(w.path, maxWatched)
	w.mu.Lock()
	defer w.mu.Unlock()
	news := fmt.Sprint(err) != fmt.Sprint(w.cause) || err == nil && (!w.read || string(b) != w.last)
	w.cause = err
	if err == nil {
		w.last, w.read = string(b), true
	}
	return news
}

// text returns what the file said last, and why it cannot be read now.
func (w *watched) text() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.cause
}
