// Package ui serves a page to the browsers of one person, on this machine's loopback address: files, and
// views of what the daemons answer, as JSON.
//
// Inputs are files and functions that make a view; outputs are answers to GET requests that come from the
// page itself and bring the token. It must not know what a view shows, nor how daemons are asked.
package ui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"time"
)

// View makes what a page shows, of the values of a query. What it returns is encoded as JSON.
type View func(ctx context.Context, query url.Values) (any, error)

// Config is what a Server serves.
type Config struct {
	// Files are index.html and what it loads.
	Files fs.FS
	// Views are asked for as api/NAME.
	Views map[string]View
	// Explain returns the message of a view's error, and what to do about it.
	Explain func(error) (message, try string)
	// Now is the clock.
	Now func() time.Time
}

// Server serves one page.
type Server struct {
	config  Config
	token   string
	answers answers
}

// New makes a server with a fresh token.
func New(c Config) *Server {
	return &Server{config: c, token: rand.Text(), answers: answers{now: c.Now, entries: map[string]*entry{}}}
}

// Address is where a browser finds the page. Browsers do not send what follows "#" to any server, so the
// token is in no log.
func (s *Server) Address(l net.Listener) string {
	return fmt.Sprintf("http://%s/#token=%s", l.Addr(), s.token)
}

// Listen listens on a port of the loopback address; any free one for 0.
func Listen(port uint16) (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	h := &http.Server{Handler: s.Handler(ctx), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	if err := h.Close(); err != nil {
		return fmt.Errorf("stop to serve the page: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// Handler answers requests. What it asks daemons for ends with ctx, and not with the request: the next one
// can use the answer.
func (s *Server) Handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	files := http.FileServerFS(s.config.Files)
	mux.Handle("/", files)
	mux.Handle("/api/", s.onlyWithToken(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[len("/api/"):]
		view, known := s.config.Views[name]
		if !known {
			refuse(w, http.StatusNotFound, "this page has no view "+name)
			return
		}
		query := r.URL.Query()
		tag := query.Get("tag")
		query.Del("tag")
		a := s.answers.get(r.Context(), name+"?"+query.Encode(), func() (any, error) { return view(ctx, query) })
		s.write(w, a, tag)
	})))
	return guarded(mux)
}

// answer is the body of the answer to a request for a view.
type answer struct {
	// View is missing if it is the one that the page has, by its tag, or if there is none yet.
	View json.RawMessage `json:"view,omitempty"`
	Tag  string          `json:"tag,omitempty"`
	// Age is how old the view is, in seconds.
	Age float64 `json:"age"`
	// Rest is for how many seconds no newer one is made.
	Rest float64 `json:"rest,omitempty"`
	// Error is why there is no newer one, and Try what to do about it.
	Error string `json:"error,omitempty"`
	Try   string `json:"try,omitempty"`
}

func (s *Server) write(w http.ResponseWriter, k kept, has string) {
	a := answer{View: k.view, Tag: k.tag}
	if k.view != nil {
		a.Age, a.Rest = s.config.Now().Sub(k.came).Seconds(), k.rest.Seconds()
	}
	if has == k.tag {
		a.View = nil
	}
	if k.err != nil {
		a.Error, a.Try = s.config.Explain(k.err)
	}
	writeJSON(w, http.StatusOK, a)
}

func refuse(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, answer{Error: message})
}

func writeJSON(w http.ResponseWriter, status int, body answer) {
	text, err := json.Marshal(body)
	if err != nil { // a view that is no JSON; kept would not have it
		status, text = http.StatusInternalServerError, []byte(`{"error":"the view is no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a browser that is gone needs no answer
}
