package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestClientFailures(t *testing.T) {
	dir := shortDir(t)
	serve := func(name string, h http.HandlerFunc) string {
		l, err := net.Listen("unix", dir+"/"+name)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(h)
		server.Listener = l
		server.Start()
		t.Cleanup(server.Close)
		return dir + "/" + name
	}
	release := make(chan struct{})
	defer close(release)
	for _, c := range []struct {
		socket  string
		reason  FailureReason
		message string
	}{
		{dir + "/none", NoSocket, "--socket PATH or STRAIT_SOCKET"},
		{serve("garbage", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }), NotStrait, "same version"},
		{serve("newer", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"apiVersion":"cli.strait.io/v9","kind":"Status"}`)
		}), NotStrait, "cli.strait.io/v9"},
		{serve("slow", func(http.ResponseWriter, *http.Request) { <-release }), NoAnswer, "in time"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := NewClient(c.socket).Status(ctx)
		cancel()
		var f *Failure
		if !errors.As(err, &f) || f.Reason != c.reason || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", c.socket, err)
		}
	}
}

// TestClientDenied dials as nobody, on a thread of its own.
func TestClientDenied(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs root")
		}
		t.Skip("needs root, to become another user")
	}
	s := New(Config{Socket: socketIn(shortDir(t))}, newSource(sample()), nil)
	start(t, s)
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			err = errno
			return
		}
		_, err = net.Dial("unix", s.cfg.Socket)
	})
	wg.Wait()
	var f *Failure
	if !errors.As(dialFailure(t.Context(), s.cfg.Socket, err), &f) || f.Reason != Denied || !strings.Contains(f.Error(), "as root") {
		t.Errorf("dial gave %v, the client %+v", err, f)
	}
}
