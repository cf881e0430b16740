package testutil

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
)

// Logger writes all levels to the test's log. Lines logged after the test's end are dropped, where
// package testing would panic: waiting for a goroutine that outlives its test is the test's job,
// not the logger's.
func Logger(t testing.TB) *slog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(w.end)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct {
	mu    sync.Mutex
	t     testing.TB
	ended bool
}

func (w *testWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.t.Log(string(bytes.TrimRight(line, "\n")))
	}
	return len(line), nil
}

func (w *testWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}
