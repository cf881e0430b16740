package kube

import (
	"net/http"
	"sync"
	"time"
)

// contact notes whether the API server answers at all. Watches alone do not show it: client-go treats
// a connection that is closed without an answer as a watch without events.
type contact struct {
	mu    sync.Mutex
	err   error // nil while it answers
	since time.Time
}

func (c *contact) state() (since time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.err
}

// wrap returns a transport that notes how each request of next went.
func (c *contact) wrap(next http.RoundTripper) http.RoundTripper { return listening{next, c} }

type listening struct {
	http.RoundTripper
	contact *contact
}

// RoundTrip implements http.RoundTripper.
func (l listening) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err != nil && r.Context().Err() != nil {
		return answer, err // canceled by us, which is no sign about the API server
	}
	c := l.contact
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.err == nil {
		c.since = time.Now()
	}
	c.err = err
	return answer, err
}
