package relay

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/fake"
	"strait.io/strait/daemon/api/server"
)

const token = "0123456789abcdef0123456789abcdef"

// relayed is a running relay of a running server.
type relayed struct {
	t    *testing.T
	addr string
	file string // of the token
	stop func() // the server
}

func start(t *testing.T) relayed {
	t.Helper()
	dir, err := os.MkdirTemp("", "strait-t-") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := Config{Socket: filepath.Join(dir, "s"), Token: filepath.Join(dir, "token"), Log: slog.New(slog.DiscardHandler)}
	s := server.New(server.Config{Socket: c.Socket}, fake.NewSource(fake.Sample()))
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	cert, certErr := certificate(time.Now())
	if err = errors.Join(err, certErr, os.WriteFile(c.Token, []byte(token+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	serverCtx, stop := context.WithCancel(ctx)
	served, relaying := make(chan error, 1), make(chan error, 1)
	go func() { served <- s.Run(serverCtx) }()
	go func() { relaying <- c.serve(ctx, l, cert) }()
	stopped := false
	r := relayed{t: t, addr: l.Addr().String(), file: c.Token, stop: func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		stopped = true
	}}
	t.Cleanup(func() {
		if !stopped {
			r.stop()
		}
		cancel()
		if err := <-relaying; err != nil {
			t.Error(err)
		}
	})
	return r
}

// ask sends a request with some tokens, and returns the status and the body.
func (r relayed) ask(method, path string, tokens ...string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, "https://"+r.addr, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.URL.Path, request.URL.RawQuery, _ = strings.Cut(path, "?")
	for _, text := range tokens {
		request.Header.Add(api.ViewTokenHeader, text)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestRelay: who has the token gets the daemon's answers, with their status. Others get no answer at all.
func TestRelay(t *testing.T) {
	r := start(t)
	status, body := r.ask("GET", "/v1/explain?service=default/serve", token)
	var e api.Explanation
	if err := json.Unmarshal([]byte(body), &e); err != nil || status != 200 || e.Service.Name != "default/serve" {
		t.Errorf("explain: %d, %v, %s", status, err, body)
	}
	for _, c := range []struct {
		what, method, path string
		tokens             []string
		status             int
		part               string
	}{
		{"the daemon's own error", "GET", "/v1/explain?service=default/srve", []string{token}, 404, "did you mean default/serve?"},
		{"the head", "HEAD", "/v1/status", []string{token}, 200, ""},
		{"no token", "GET", "/v1/status", nil, 401, "X-Strait-Token"},
		{"no token, another path", "GET", "/", nil, 401, "X-Strait-Token"},
		{"another token", "GET", "/v1/status", []string{token[1:] + "x"}, 401, "X-Strait-Token"},
		{"a part of the token", "GET", "/v1/status", []string{token[:31]}, 401, "X-Strait-Token"},
		{"an empty token", "GET", "/v1/status", []string{""}, 401, "X-Strait-Token"},
		{"two tokens", "GET", "/v1/status", []string{"x", token}, 401, "X-Strait-Token"},
		{"writing", "POST", "/v1/status", []string{token}, 405, "read-only"},
		{"another path", "GET", "/metrics", []string{token}, 404, "/v1/"},
		{"up from the path", "GET", "/v1/../metrics", []string{token}, 404, "/v1/"},
		{"the root", "GET", "/v1", []string{token}, 404, "/v1/"},
		{"health", "GET", "/healthz", nil, 200, "ok"},
	} {
		status, body := r.ask(c.method, c.path, c.tokens...)
		if status != c.status || !strings.Contains(body, c.part) || c.status == 401 && strings.Contains(body, "default/") {
			t.Errorf("%s: %d %s", c.what, status, body)
		}
	}
}

// TestTokenChanges: a new token counts at once, and without one nothing is answered.
func TestTokenChanges(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		file   *string
		given  string
		status int
	}{
		{ptr(strings.Repeat("n", 40)), token, 401}, {ptr(strings.Repeat("n", 40)), strings.Repeat("n", 40), 200},
		{ptr(""), "", 401}, {ptr("short"), "short", 401}, {nil, token, 401}, {ptr(token), token, 200},
	} {
		if err := os.Remove(r.file); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if c.file != nil {
			if err := os.WriteFile(r.file, []byte(*c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if status, body := r.ask("GET", "/v1/status", c.given); status != c.status {
			t.Errorf("%q for %v: %d %s, want %d", c.given, c.file, status, body, c.status)
		}
	}
}

func ptr(s string) *string { return &s }

// TestDaemonIsGone: without the daemon, the answer is an error with what to do.
func TestDaemonIsGone(t *testing.T) {
	r := start(t)
	r.stop()
	status, body := r.ask("GET", "/v1/status", token)
	var e api.ErrorAnswer
	if err := json.Unmarshal([]byte(body), &e); err != nil || status != 502 || e.Kind != api.KindError || !strings.Contains(e.Message, "does not answer") || e.Try == "" {
		t.Errorf("%d, %v, %s", status, err, body)
	}
}

// TestConnectionsAreBounded: strangers that keep connections open take no more than there are places, and one
// that leaves makes room.
func TestConnectionsAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := newBounded(l)
	defer b.Close()
	accepted := make(chan net.Conn, maxConns+1)
	go func() {
		for {
			conn, err := b.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- conn
		}
	}()
	var conns []net.Conn
	for i := range maxConns + 1 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(fmt.Errorf("connection %d: %w", i, err))
		}
		defer conn.Close()
		if i < maxConns {
			conns = append(conns, <-accepted)
		}
	}
	select {
	case <-accepted:
		t.Error("one too many is accepted")
	case <-time.After(50 * time.Millisecond):
	}
	conns[0].Close()
	conns[0].Close() // twice, and makes room once
	(<-accepted).Close()
	for _, c := range conns[1:] {
		c.Close()
	}
}
