package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"
)

// clock is a time that a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()) }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

func newServer(c *clock, view View) *Server {
	return New(Config{
		Files: fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}, "app.js": {Data: []byte("1")}},
		Views: map[string]View{"v": view}, Now: c.now,
		Explain: func(err error) (string, string) { return err.Error(), "try again" },
	})
}

func get(s *Server, target string, change func(*http.Request)) (*httptest.ResponseRecorder, answer) {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "127.0.0.1:8080"
	r.Header.Set(tokenHeader, s.token)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.Handler(r.Context()).ServeHTTP(w, r)
	var a answer
	_ = json.Unmarshal(w.Body.Bytes(), &a)
	return w, a
}

// TestGuard: only GET, at the loopback address, from the page itself, and with the token for views. Every
// answer has the policy.
func TestGuard(t *testing.T) {
	s := newServer(&clock{}, func(context.Context, url.Values) (any, error) { return "seen", nil })
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		name, target string
		change       func(*http.Request)
		want         int
	}{
		{"the page", "/", nil, 200},
		{"the page without a token", "/", header(tokenHeader, ""), 200},
		{"its script", "/app.js", header("Sec-Fetch-Site", "same-origin"), 200},
		{"from the address bar", "/", header("Sec-Fetch-Site", "none"), 200},
		{"a view", "/api/v", nil, 200},
		{"through a tunnel", "/api/v", func(r *http.Request) { r.Host = "localhost:9000" }, 200},
		{"without a port", "/api/v", func(r *http.Request) { r.Host = "localhost" }, 200},
		{"no view", "/api/w", nil, 404},
		{"no file", "/secret", nil, 404},
		{"a view without a token", "/api/v", header(tokenHeader, ""), 401},
		{"a view with another token", "/api/v", header(tokenHeader, "x"), 401},
		{"by a link on another site", "/", header("Sec-Fetch-Site", "cross-site"), 403},
		{"by a program of another port", "/api/v", header("Sec-Fetch-Site", "same-site"), 403},
		{"by a name that leads here", "/api/v", func(r *http.Request) { r.Host = "evil.example:8080" }, 403},
		{"by a name like ours", "/", func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 403},
		{"another method", "/api/v", func(r *http.Request) { r.Method = http.MethodPost }, 405},
		{"a question before one of another site", "/api/v", func(r *http.Request) { r.Method = http.MethodOptions }, 405},
	} {
		w, a := get(s, c.target, c.change)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		}
		if c.want > 400 && c.want != 404 && a.Error == "" || c.want > 400 && strings.Contains(w.Body.String(), "seen") {
			t.Errorf("%s: %s", c.name, w.Body)
		}
		for name := range headers {
			if w.Header().Get(name) == "" && w.Code != 404 { // net/http lets errors of files be kept
				t.Errorf("%s: no %s", c.name, name)
			}
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: another site may read the answer", c.name)
		}
	}
}

// TestAnswers: pages share a view while it is fresh, one that has it gets it no more, and an error leaves the
// last view in place.
func TestAnswers(t *testing.T) {
	c, asked, failing := &clock{}, 0, false
	s := newServer(c, func(_ context.Context, q url.Values) (any, error) {
		asked++
		if failing {
			return nil, errors.New("no daemon")
		}
		return "view of " + q.Get("of"), nil
	})
	_, first := get(s, "/api/v?of=a", nil)
	if string(first.View) != `"view of a"` || first.Tag == "" || first.Error != "" {
		t.Fatalf("%+v", first)
	}
	if _, a := get(s, "/api/v?of=a&tag="+first.Tag, nil); a.View != nil || a.Tag != first.Tag || asked != 1 {
		t.Errorf("a page that has the view: %+v, asked %d times", a, asked)
	}
	if _, a := get(s, "/api/v?of=b&tag="+first.Tag, nil); string(a.View) != `"view of b"` || asked != 2 {
		t.Errorf("another view: %+v", a)
	}
	failing = true
	c.pass(3 * time.Second)
	if _, a := get(s, "/api/v?of=a", nil); string(a.View) != `"view of a"` || a.Error != "no daemon" || a.Try != "try again" || a.Age != 3 {
		t.Errorf("an error: %+v", a)
	}
	if _, a := get(s, "/api/v?of=c", nil); a.View != nil || a.Error != "no daemon" {
		t.Errorf("an error and no view: %+v", a)
	}
	failing = false
	c.pass(3 * time.Second)
	if _, a := get(s, "/api/v?of=a", nil); a.Error != "" || a.Age != 0 {
		t.Errorf("after an error: %+v", a)
	}
}

// TestTogether: pages that ask at the same time share one question, and a view that takes time leaves the
// daemons alone for longer.
func TestTogether(t *testing.T) {
	c, asked, release := &clock{}, atomic.Int64{}, make(chan struct{})
	s := newServer(c, func(context.Context, url.Values) (any, error) {
		asked.Add(1)
		<-release
		c.pass(time.Second)
		return 1, nil
	})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { get(s, "/api/v", nil) })
	}
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
	c.pass(1500 * time.Millisecond)
	if _, a := get(s, "/api/v", nil); asked.Load() != 1 || a.Rest != 2 {
		t.Errorf("asked %d times within 1.5 s of a view that took 1 s; the next after %v s", asked.Load(), a.Rest)
	}
	c.pass(500 * time.Millisecond)
	if get(s, "/api/v", nil); asked.Load() != 2 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestKept: views that no page asks for are forgotten.
func TestKept(t *testing.T) {
	c := &clock{}
	s := newServer(c, func(context.Context, url.Values) (any, error) { return 1, nil })
	for _, of := range strings.Split(strings.Repeat("x,", 3*maxKept), ",") {
		get(s, "/api/v?of="+of+time.Duration(c.at.Add(1)).String(), nil)
	}
	if n := len(s.answers.entries); n > maxKept {
		t.Errorf("%d views are kept", n)
	}
}

// TestRun: the server answers at the address that it prints, and ends with ctx.
func TestRun(t *testing.T) {
	s := newServer(&clock{}, nil)
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	r, err := http.Get(s.Address(l))
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%v %v", r, err)
	}
	r.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
