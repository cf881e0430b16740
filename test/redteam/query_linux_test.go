package redteam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip/stream"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// get asks a daemon on its socket, and returns the HTTP status and the answer.
func (m *member) get(path string) (int, []byte, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", m.path("run/strait.sock"))
	}
	c := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	return read(c.Get("http://strait" + path))
}

func read(r *http.Response, err error) (int, []byte, error) {
	if err != nil {
		return 0, nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return r.StatusCode, body, err
}

// spy has the gossip key, queries daemons, and trusts each of them.
type spy struct{ everybody }

func (spy) Trusts(stream.Peer) error { return nil }
func (spy) Answer(conn net.Conn)     { conn.Close() }

// spies returns what the daemon of a node answers one that has the gossip key and what else it shows.
func (w *world) spies(as, on clustermesh.Origin, shows stream.Credentials) (status int, err error) {
	w.Helper()
	var self stream.Peer
	self.Origin, self.Boot = as, uint64(time.Now().UnixNano())
	host := spy{everybody{at: numbered}}
	s, err := stream.New(self.Peer, w.keys, shows, host, stream.Services{Answerer: host}, slog.New(slog.DiscardHandler))
	w.must(err)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Query(ctx, on) }
	c := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	status, _, err = read(c.Get("http://strait/v1/status"))
	return status, err
}

// credentials returns what a machine proves with that its daemon is that of its node: its key, and what its root
// states about that.
func (m *member) credentials() stream.Credentials {
	m.w.Helper()
	text, err := os.ReadFile(m.path("state/node.key"))
	m.w.must(err)
	key, err := authority.ParsePrivate(string(text))
	m.w.must(err)
	stated := authority.Statement{Cluster: clustermesh.ClusterName(m.cluster), Node: clustermesh.NodeName(m.node), Key: key.Public()}
	signed, err := stated.Signed(time.Now()).Sign(m.w.roots[m.cluster])
	m.w.must(err)
	return stream.Credentials{Key: key.Signer(), Statement: func() []byte { return signed }}
}

// TestQueriesOfOthers: a daemon answers for the other nodes of its cluster by asking their daemons. None answers
// another cluster, or one that has the gossip key and a node's name. If a node is down, the daemon says so.
func TestQueriesOfOthers(t *testing.T) {
	if !inside(t) {
		return
	}
	w, f := newWorldOfThree(t)
	for from, node := range map[*member]string{w.east: "n3", f: "n1"} {
		testutil.Eventually(t, patience, func() error {
			status, body, err := from.get("/v1/status?node=" + node)
			var a api.StatusAnswer
			if err = errors.Join(err, json.Unmarshal(body, &a)); err == nil && (status != http.StatusOK || a.Node != node || a.Cluster != "east") {
				err = fmt.Errorf("node %s: %d %s", node, status, body)
			}
			return err
		})
	}
	status, body, err := w.east.get("/v1/status?node=" + url.QueryEscape("west/n1"))
	if err != nil || status != http.StatusBadRequest || !strings.Contains(string(body), "--context") {
		t.Errorf("a node of another cluster: %d %s %v", status, body, err)
	}

	n1, n3, western := origin("east", "n1"), origin("east", "n3"), origin("west", "n1")
	proven := w.west.credentials()
	for what, c := range map[string]struct {
		as    clustermesh.Origin
		shows stream.Credentials
	}{
		"the gossip key and a node's name": {n3, stream.Credentials{}},
		"the gossip key and a new name":    {origin("east", "n9"), stream.Credentials{}},
		"another cluster":                  {western, proven},
		"another cluster by a node's name": {n3, proven},
	} {
		if status, err := w.spies(c.as, n1, c.shows); err == nil {
			t.Errorf("%s: answered with %d", what, status)
		}
	}
	if status, err := w.spies(n3, n1, f.credentials()); err != nil || status != http.StatusOK {
		t.Errorf("the node's own key: %d, %v", status, err)
	}

	f.stop()
	testutil.Eventually(t, patience, func() error {
		status, body, err := w.east.get("/v1/status?node=n3")
		if err == nil && (status != http.StatusBadGateway || !strings.Contains(string(body), "(contact: quiet, last heard ")) {
			err = fmt.Errorf("a daemon that was stopped: %d %s", status, body)
		}
		return err
	})
	status, body, err = w.east.get("/v1/status?node=*")
	var all api.NodeAnswerList
	if err = errors.Join(err, json.Unmarshal(body, &all)); err != nil || status != http.StatusOK || len(all.Items) != 2 ||
		all.Items[0].Answer == nil || all.Items[1].Error == nil || all.Items[1].Contact != "quiet" {
		t.Errorf("all nodes: %d, %v: %s", status, err, body)
	}
}
