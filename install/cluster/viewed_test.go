package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// TestViewed: the answers of strait-view come with the token. Where the API server does not reach
// strait-view, a command in a daemon's pod answers; where it forbids the query, nothing else is
// tried.
func TestViewed(t *testing.T) {
	status := func(code int, message string) any {
		return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: int32(code), Message: message}
	}
	for _, c := range []struct {
		what   string
		code   int
		body   any
		node   string // of the answer
		reason api.FailureReason
	}{
		{"an answer", http.StatusOK, api.NewStatusAnswer(api.Status{Node: "viewed"}), "viewed", ""},
		{"not reached", http.StatusServiceUnavailable, status(503, "error trying to reach service: dial tcp: i/o timeout"), "commands", ""},
		{"forbidden", http.StatusForbidden, status(403, "services is forbidden"), "", api.Denied},
		{"no plan yet", http.StatusServiceUnavailable, api.NewError("straitd has no plan yet", "wait"), "", api.Starting},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(api.ViewTokenHeader) != "secret" || r.URL.Path != "/proxy/v1/status" || r.URL.RawQuery != "node=n7" {
				t.Errorf("%s: asked %s with token %q", c.what, r.URL, r.Header.Get(api.ViewTokenHeader))
			}
			w.WriteHeader(c.code)
			_ = json.NewEncoder(w).Encode(c.body)
		}))
		base, err := url.Parse(server.URL + "/proxy")
		if err != nil {
			t.Fatal(err)
		}
		run := func(context.Context, ...string) (client.Output, error) {
			text, err := json.Marshal(api.NewStatusAnswer(api.Status{Node: "commands"}))
			return client.Output{Stdout: text}, err
		}
		v := viewed{base, server.Client(), "secret", "context c1", "strait-system", func(context.Context) (*client.Client, error) {
			return client.OnCommands(run, "node n7"), nil
		}}
		got, err := client.Over(v, "context c1").At("n7").Status(t.Context())
		server.Close()
		var failure *api.Failure
		if c.reason != "" {
			if !errors.As(err, &failure) || failure.Reason != c.reason || failure.Try == "" {
				t.Errorf("%s: %+v", c.what, err)
			}
		} else if err != nil || got.Node != c.node {
			t.Errorf("%s: %+v, %v", c.what, got, err)
		}
	}
}
