package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// shortDir is a new directory whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "strait-t-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start runs the server until stop is called, at the latest when the test ends, and waits for its socket.
func start(t *testing.T, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(stop)
	waitFor(t, "the socket", func() bool {
		var f *api.Failure
		_, err := client.OnSocket(s.cfg.Socket).Status(ctx)
		return !errors.As(err, &f) || f.Reason == api.Starting
	})
	return stop
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

func socketIn(dir string) string { return filepath.Join(dir, "run", "strait.sock") }
