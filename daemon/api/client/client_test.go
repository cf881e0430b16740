package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
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
		reason  api.FailureReason
		message string
	}{
		{dir + "/none", api.NoSocket, "--socket PATH or STRAIT_SOCKET"},
		{serve("garbage", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }), api.NotStrait, "same version"},
		{serve("newer", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"apiVersion":"cli.strait.io/v9","kind":"Status"}`)
		}), api.NotStrait, "cli.strait.io/v9"},
		{serve("away", failing(http.StatusBadGateway)), api.NoAnswer, "Bad Gateway; do this"},
		{serve("tokenless", failing(http.StatusUnauthorized)), api.Denied, "Unauthorized; do this"},
		{serve("slow", func(http.ResponseWriter, *http.Request) { <-release }), api.NoAnswer, "in time"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := OnSocket(c.socket).Status(ctx)
		cancel()
		var f *api.Failure
		if !errors.As(err, &f) || f.Reason != c.reason || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", c.socket, err)
		}
	}
}

// failing answers with an error.
func failing(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(api.NewError(http.StatusText(status), "do this"))
	}
}

// shortDir is a new directory whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "strait-t-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
