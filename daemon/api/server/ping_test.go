package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/fake"
)

// busy has no place for another ping.
type busy struct{ *fake.Source }

func (busy) Ping(context.Context, string) (*api.Ping, error) { return nil, ErrBusy }

// TestPingRefused: a target that is not there is the caller's mistake, and too many pings are not.
func TestPingRefused(t *testing.T) {
	for name, c := range map[string]struct {
		src  Source
		to   string
		want int
	}{
		"a node":    {fake.NewSource(fake.Sample()), "b/n1", http.StatusOK},
		"nobody":    {fake.NewSource(fake.Sample()), "nobody", http.StatusBadRequest},
		"too often": {busy{fake.NewSource(fake.Sample())}, "b/n1", http.StatusTooManyRequests},
	} {
		w := httptest.NewRecorder()
		New(Config{}, c.src).answers().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/ping?to="+c.to, nil))
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, c.want, w.Body)
		}
	}
}
