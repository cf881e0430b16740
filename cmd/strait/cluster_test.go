package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/internal/testutil"
)

// TestDrainCluster: what a drain would do is shown, it is refused if a Service has no other endpoint, and
// outside Kubernetes a file of the manifests has it.
func TestDrainCluster(t *testing.T) {
	dir := t.TempDir()
	socket, src := startServer(t, wellView())
	drain := func(args ...string) result {
		return world(append([]string{"cluster", "drain", "us-east", "--manifest", dir, "--socket", socket}, args...)...).run(t)
	}
	file := filepath.Join(dir, "strait-drain.yaml")
	if got := drain("--dry-run"); got.code != 0 || !strings.Contains(got.stdout, "if drain us-east") {
		t.Errorf("dry run: %+v", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a dry run wrote the file")
	}
	if got := drain("--over", "5m"); got.code != 0 {
		t.Errorf("drain: %+v", got)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "name: strait-system") || !strings.Contains(string(text), `/5m0s"`) {
		t.Errorf("%s %v", text, err)
	}
	before, _ := os.ReadFile(file)
	other := world("cluster", "drain", "rack9", "--manifest", dir, "--socket", socket).run(t)
	if after, _ := os.ReadFile(file); other.code != 2 || !strings.Contains(other.stderr, "is in cluster") || string(after) != string(before) {
		t.Errorf("another cluster's name: %+v, %s", other, after)
	}
	src.alone.Store(true)
	if got := drain(); got.code != 1 || !strings.Contains(got.stderr, "no other endpoint serves default/serve") {
		t.Errorf("a Service without other endpoints: %+v", got)
	}
	if got := drain("--force"); got.code != 0 {
		t.Errorf("--force: %+v", got)
	}
	if text, _ := os.ReadFile(file); !strings.Contains(string(text), `strait.io/drain: "true"`) {
		t.Errorf("%s", text)
	}
	wrong := world("cluster", "undrain", "rack9", "--manifest", dir).run(t)
	if _, err := os.Stat(file); err != nil || wrong.code != 2 || !strings.Contains(wrong.stderr, `drains cluster "us-east", not "rack9"`) {
		t.Errorf("undrain of another cluster: %+v, %v", wrong, err)
	}
	undrain := world("cluster", "undrain", "us-east", "--manifest", dir).run(t)
	if _, err := os.Stat(file); err == nil || undrain.code != 0 {
		t.Errorf("undrain: %+v, %v", undrain, err)
	}
	for _, args := range [][]string{{"--over", "25h"}, {"--manifest", filepath.Join(dir, "none")}} {
		if got := drain(append(args, "--force")...); got.code != 2 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestWhatIf(t *testing.T) {
	socket, _ := startServer(t, wellView())
	ask := func(args ...string) result { return world(append(args, "--socket", socket)...).run(t) }
	if got := ask("explain", "--what-if", "cluster west down"); got.code != 0 || !strings.Contains(got.stdout, "NOW") || !strings.Contains(got.stdout, "default/serve") {
		t.Errorf("%+v", got)
	}
	if got := ask("explain", "default/serve", "--what-if", "cluster west down"); got.code != 0 || !strings.Contains(got.stdout, "ENDPOINT") {
		t.Errorf("%+v", got)
	}
	if got := ask("explain", "--what-if", "nonsense"); got.code == 0 || !strings.Contains(got.stderr, "that is no change") {
		t.Errorf("%+v", got)
	}
	if got := ask("explain", "default/serve", "--from", "east/n9"); got.code != 0 || !strings.Contains(got.stdout, "computed here") {
		t.Errorf("%+v", got)
	}
	if got := ask("explain", "default/serve", "--from", "nobody"); got.code == 0 || !strings.Contains(got.stderr, "no node is called nobody") {
		t.Errorf("%+v", got)
	}
}

// TestWatch: what is watched is explained again when the choice changes, and not for a counter.
func TestWatch(t *testing.T) {
	socket, src := startServer(t, wellView())
	ctx, cancel := context.WithCancel(t.Context())
	var out lockedBuffer
	e := world("explain", "default/serve", "--watch", "--socket", socket)
	e.Stdout = &out
	done := make(chan int)
	go func() { done <- run(ctx, e) }()
	shown := func() int { return strings.Count(out.String(), "new connections go to") }
	testutil.Eventually(t, 10*time.Second, func() error {
		if shown() == 0 {
			return errors.New("nothing is explained")
		}
		return nil
	})
	first := shown()
	counted := wellView()
	for _, s := range counted.Services {
		for i := range s.Frontends {
			s.Frontends[i].Connects++
		}
	}
	src.view.Store(counted)
	time.Sleep(2500 * time.Millisecond)
	if got := shown(); got != first {
		t.Errorf("explained %d frontends after a counter changed, and %d before", got, first)
	}
	changed := wellView()
	for _, s := range changed.Services {
		for i := range s.Frontends {
			s.Frontends[i].Tier = "region"
		}
	}
	src.view.Store(changed)
	testutil.Eventually(t, 10*time.Second, func() error {
		if shown() != 2*first {
			return fmt.Errorf("explained %d frontends, want %d", shown(), 2*first)
		}
		return nil
	})
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out.writes != 2 {
		t.Errorf("two explanations were written in %d parts", out.writes)
	}
}

// TestWatchList: a watched list prints the rows that change and the names that go, and nothing for
// what only moves. With -o name it prints names alone.
func TestWatchList(t *testing.T) {
	socket, src := startServer(t, wellView())
	ctx, cancel := context.WithCancel(t.Context())
	var rows, names lockedBuffer
	done := make(chan int)
	for out, args := range map[*lockedBuffer][]string{&rows: {"nodes", "--watch"}, &names: {"nodes", "-w", "-o", "name"}} {
		e := world(append(args, "--socket", socket)...)
		e.Stdout = out
		go func() { done <- run(ctx, e) }()
	}
	eventually := func(what string, of *lockedBuffer, want string) {
		t.Helper()
		testutil.Eventually(t, 10*time.Second, func() error {
			if !strings.HasSuffix(of.String(), want) {
				return fmt.Errorf("%s: it does not end with %q:\n%s", what, want, of.String())
			}
			return nil
		})
	}
	eventually("at first", &names, "us-east/us-east-n2\n")
	eventually("at first", &rows, "–\n")
	moved := wellView()
	for i := range moved.Nodes {
		moved.Nodes[i].Heard, moved.Nodes[i].Stamp = now, "2/2"
	}
	before := rows.String()
	src.view.Store(moved)
	time.Sleep(2500 * time.Millisecond)
	if got := rows.String(); got != before {
		t.Errorf("printed for what only moves: %s", got[len(before):])
	}
	changed := wellView()
	changed.Nodes[1].Contact = "quiet"
	changed.Nodes = changed.Nodes[1:]
	src.view.Store(changed)
	eventually("after a change", &rows, "! us-east/us-east-n1 is not there any more\n")
	eventually("after a change", &names, "us-east/us-east-n2\nus-east/us-east-n2\n")
	if added := rows.String()[len(before):]; strings.Count(added, "! quiet") != 1 || strings.Contains(added, "one way") {
		t.Errorf("not only the row that changed: %s", added)
	}
	cancel()
	for range 2 {
		if code := <-done; code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu     sync.Mutex
	b      bytes.Buffer
	writes int
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestDrainTimeout: an API server that does not answer is not waited for longer than --timeout.
func TestDrainTimeout(t *testing.T) {
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer server.Close()
	defer close(released)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
		clusters: [{name: a, cluster: {server: "` + server.URL + `"}}], users: [{name: a, user: {}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"drain", "undrain"} {
		got := world("cluster", verb, "us-east", "--kubeconfig", kubeconfig, "--timeout", "200ms").run(t)
		if got.code != cli.ExitWaitOver || !strings.Contains(got.stderr, "not done within 200ms; use --timeout to wait longer") {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}

// TestClusterUsage: what can be known without an API server is reported without one.
func TestClusterUsage(t *testing.T) {
	for _, c := range []struct {
		args    []string
		code    int
		message string
	}{
		{[]string{"clusterset", "connect", "--context", "a"}, cli.ExitUsage, "needs two clusters"},
		{[]string{"clusterset", "disconnect", "--context", "a"}, cli.ExitUsage, "accepts 1 arg"},
		{[]string{"install", "--context", "a", "-o", "json"}, cli.ExitUsage, "no --output json"},
		{[]string{"clusterset", "status", "-o", "yaml"}, cli.ExitUsage, "no --output yaml"},
		{[]string{"install", "--kubeconfig", "/nonexistent", "--context", "a"}, cli.ExitProblem, `context "a"`},
		{[]string{"install", "--kubeconfig", "/nonexistent", "extra"}, cli.ExitUsage, "extra"},
	} {
		if got := world(c.args...).run(t); got.code != c.code || !strings.Contains(got.stderr, c.message) {
			t.Errorf("%v: exit code %d, %s", c.args, got.code, got.stderr)
		}
	}
}
