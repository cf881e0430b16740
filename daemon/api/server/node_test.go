package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/fake"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// fleet are the nodes of cluster a: each has a server of its own behind a TCP port.
type fleet struct {
	peers  []Peer
	addr   map[string]string // where the daemons of nodes listen
	failed map[string]error  // instead
}

func (f *fleet) Viewpoint() api.Viewpoint {
	return api.Viewpoint{Cluster: "a", Node: "n1", Clusters: 2}
}
func (f *fleet) All() []Peer { return f.peers }

func (f *fleet) Dial(ctx context.Context, node string) (net.Conn, error) {
	if err := f.failed[node]; err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", f.addr[node])
}

// accepting starts a listener whose connections go to handle, each in a goroutine of its own.
func (f *fleet) accepting(t *testing.T, name string, handle func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f.addr[name] = l.Addr().String()
	f.peers = append(f.peers, Peer{Name: name, Contact: api.Alive, Heard: time.Now()})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go handle(conn)
		}
	}()
}

// answering adds a node with a server, whose status has the node's name.
func (f *fleet) answering(t *testing.T, dir, name string) {
	t.Helper()
	v := fake.Sample()
	v.Status.Node = name
	s := New(Config{Socket: dir + "/" + name}, fake.NewSource(v))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	f.accepting(t, name, s.Answer)
}

func newFleet() *fleet {
	return &fleet{addr: map[string]string{}, failed: map[string]error{}, peers: []Peer{{Name: "n1", Contact: api.Self}}}
}

// ask returns what the local handler of n1 answers.
func (f *fleet) ask(t *testing.T, path string) (int, []byte) {
	t.Helper()
	server := httptest.NewServer(New(Config{Peers: f}, fake.NewSource(fake.Sample())).localHandler())
	defer server.Close()
	r, err := http.Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, body
}

// TestNodeIsAsked: a query that names a node gets that node's own answer, with its status.
func TestNodeIsAsked(t *testing.T) {
	f := newFleet()
	f.answering(t, shortDir(t), "n2")
	for query, node := range map[string]string{"": "n1", "?node=n1": "n1", "?node=n2": "n2", "?node=a/n2": "n2", "?node=a%2Fn1": "n1"} {
		status, body := f.ask(t, "/v1/status"+query)
		var a api.StatusAnswer
		if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK || a.Node != node {
			t.Errorf("status%s: %d, node %q, %v; want node %s", query, status, a.Node, err, node)
		}
	}
	for _, path := range []string{"/v1/explain?service=default/serve", "/v1/backends?service=default/serve", "/v1/explain?service=default/srve", "/v1/explain?service=x", "/v1/whatif?change=x"} {
		ownStatus, own := f.ask(t, path)
		status, body := f.ask(t, path+"&node=n2")
		if same := func(b []byte) string { return strings.ReplaceAll(string(b), "n2", "n1") }; status != ownStatus || same(body) != same(own) {
			t.Errorf("%s: n2 answers %d %s; n1 %d %s", path, status, body, ownStatus, own)
		}
	}
}

// TestNodeIsNotAsked: why a node gave no answer, and what to do.
func TestNodeIsNotAsked(t *testing.T) {
	f := newFleet()
	heard := time.Now().Add(-90 * time.Second)
	f.accepting(t, "mute", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	f.accepting(t, "shut", func(c net.Conn) { c.Close() })
	f.peers = append(f.peers,
		Peer{Name: "gone", Contact: "silent", Heard: heard}, Peer{Name: "down", Contact: "quiet", Heard: heard}, Peer{Name: "new", Contact: "held"},
		Peer{Name: "older", Contact: api.Alive, Heard: heard})
	for _, name := range []string{"gone", "down", "new"} {
		f.failed[name] = errors.New("connection refused")
	}
	f.failed["older"] = problem.Refuse("upgrade it", "its straitd answers no queries of other nodes")
	for _, c := range []struct {
		node   string
		status int
		parts  []string
	}{
		{"n9", 404, []string{"cluster a has no node n9, as seen from node n1", "strait nodes"}},
		{"b/n1", 400, []string{"b/n1 is a node of cluster b", "--context"}},
		{"a/b/c", 400, []string{`"a/b/c" names no node`, "CLUSTER/NODE"}},
		{"a/", 400, []string{"names no node"}},
		{"mute", 502, []string{"node mute: straitd does not answer in time (contact: alive, last heard "}},
		{"shut", 502, []string{"node shut: straitd refuses the query"}},
		{"gone", 502, []string{"node gone: neither straitd nor the machine answers (contact: silent, last heard " + heard.UTC().Format(time.RFC3339) + ", 1m3", "whether the machine runs"}},
		{"down", 502, []string{"node down: straitd does not run, but the machine answers (contact: quiet, last heard", "start straitd there"}},
		{"new", 502, []string{"contact: held, not heard since this daemon started"}},
		{"older", 502, []string{"node older: its straitd answers no queries of other nodes", "upgrade it"}},
	} {
		began := time.Now()
		status, body := f.ask(t, "/v1/status?node="+c.node)
		var a api.ErrorAnswer
		if err := json.Unmarshal(body, &a); err != nil || status != c.status || a.Kind != api.KindError {
			t.Errorf("%s: %d, %v", c.node, status, err)
		}
		for _, part := range c.parts {
			if !strings.Contains(a.Message+"; "+a.Try, part) {
				t.Errorf("%s: %q lacks %q", c.node, a.Message+"; "+a.Try, part)
			}
		}
		if took := time.Since(began); took > forwardTimeout+time.Second {
			t.Errorf("%s took %s", c.node, took)
		}
	}
	f.peers = nil
	if status, body := f.ask(t, "/v1/status?node=n2"); status != http.StatusServiceUnavailable || !strings.Contains(string(body), "no plan yet") {
		t.Errorf("before the first plan: %d %s", status, body)
	}
}

// TestPeersAnswerForThemselves: what another node asks is never passed on to a third, and changes nothing.
func TestPeersAnswerForThemselves(t *testing.T) {
	f := newFleet()
	s := New(Config{Peers: f}, fake.NewSource(fake.Sample()))
	w := httptest.NewRecorder()
	s.peerHandler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/status?node=n7", nil))
	var a api.StatusAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || a.Node != "n1" || w.Header().Get("Connection") != "close" {
		t.Errorf("%v: %+v", err, a)
	}
	w = httptest.NewRecorder()
	s.peerHandler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/status", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST gives %d", w.Code)
	}
}

// TestBrokenAnswer: a client never takes the first part of an answer for the whole.
func TestBrokenAnswer(t *testing.T) {
	f := newFleet()
	for name, head := range map[string]string{"sized": "Content-Length: 100\r\n\r\n{", "chunked": "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
		f.accepting(t, name, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+head)
			c.Close()
		})
		server := httptest.NewServer(New(Config{Peers: f}, fake.NewSource(fake.Sample())).localHandler())
		r, err := http.Get(server.URL + "/v1/status?node=" + name)
		if err == nil {
			_, err = io.ReadAll(r.Body)
			r.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: a broken answer seems whole", name)
		}
		server.Close()
	}
}

// gatherFrom asks every node, and returns the answers by node.
func (f *fleet) gatherFrom(t *testing.T, path string) map[string]api.NodeAnswer {
	t.Helper()
	status, body := f.ask(t, path+"?node=*")
	var l api.NodeAnswerList
	if err := json.Unmarshal(body, &l); err != nil || status != http.StatusOK || l.Kind != api.KindNodeAnswers || l.SeenFrom != f.Viewpoint() {
		t.Fatalf("%d, %v: %+v", status, err, l.Meta)
	}
	out := map[string]api.NodeAnswer{}
	for i, a := range l.Items {
		if out[a.Node] = a; i > 0 && l.Items[i-1].Node >= a.Node {
			t.Errorf("%s comes after %s", a.Node, l.Items[i-1].Node)
		}
	}
	if len(out) != len(f.peers) {
		t.Errorf("%d answers for %d nodes", len(out), len(f.peers))
	}
	return out
}

// TestEveryNode asks 100 nodes, 19 of which do not answer, and has all answers within 2 s.
func TestEveryNode(t *testing.T) {
	f, dir := newFleet(), shortDir(t)
	for i := range 80 {
		f.answering(t, dir, fmt.Sprintf("up-%02d", i))
	}
	for i := range 10 {
		f.accepting(t, fmt.Sprintf("mute-%d", i), func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	}
	for i := range 9 {
		name := fmt.Sprintf("gone-%d", i)
		f.peers = append(f.peers, Peer{Name: name, Contact: "silent", Heard: time.Now()})
		f.failed[name] = errors.New("no route to host")
	}
	// Again on a busy machine, where 80 handlers can take longer than the time that is measured.
	testutil.Eventually(t, time.Minute, func() error {
		began := time.Now()
		answers := f.gatherFrom(t, "/v1/status")
		took := time.Since(began)
		t.Logf("%d nodes in %s", len(answers), took)
		if took > 2*time.Second || len(answers) != 100 {
			return fmt.Errorf("%d nodes took %s", len(answers), took)
		}
		var errs []error
		for name, a := range answers {
			up := strings.HasPrefix(name, "up") || name == "n1"
			var s api.StatusAnswer
			if up && (json.Unmarshal(a.Answer, &s) != nil || s.Node != name || a.Status != http.StatusOK || a.Error != nil || a.Age < 0 || a.Age > 2) {
				errs = append(errs, fmt.Errorf("%s: node %q, %+v", name, s.Node, a))
			}
			if !up && (a.Answer != nil || a.Status != http.StatusBadGateway || a.Error == nil || !strings.Contains(a.Error.Message, "node "+name+": ")) {
				errs = append(errs, fmt.Errorf("%s: %+v", name, a))
			}
		}
		return errors.Join(errs...)
	})
}

// TestNobodyAnswers: though no node answers, the list is there in time.
func TestNobodyAnswers(t *testing.T) {
	f := newFleet()
	var open atomic.Int64
	for i := range 200 {
		f.accepting(t, fmt.Sprintf("mute-%03d", i), func(c net.Conn) {
			open.Add(1)
			_, _ = io.Copy(io.Discard, c)
			open.Add(-1)
		})
	}
	began := time.Now()
	answers := f.gatherFrom(t, "/v1/services")
	if took := time.Since(began); took > gatherTimeout(200)+time.Second {
		t.Errorf("it took %s", took)
	}
	if a := answers["n1"]; a.Status != http.StatusOK || a.Answer == nil {
		t.Errorf("the node itself: %+v", a)
	}
	waitFor(t, "all connections to end", func() bool { return open.Load() == 0 })
}

// TestGatherErrors: a node's own error stays one, what is no JSON is none, and the memory for answers is bounded.
func TestGatherErrors(t *testing.T) {
	f := newFleet()
	f.answering(t, shortDir(t), "n2")
	f.accepting(t, "html", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>")
		c.Close()
	})
	answers := f.gatherFrom(t, "/v1/explain")
	for _, name := range []string{"n1", "n2"} {
		if a := answers[name]; a.Status != http.StatusBadRequest || a.Error == nil || a.Answer != nil || !strings.Contains(a.Error.Message, "names no service") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := answers["html"]; a.Status != http.StatusBadGateway || !strings.Contains(a.Error.Message, "no JSON") {
		t.Errorf("html: %+v", a)
	}
	var left atomic.Int64
	left.Store(100)
	r := httptest.NewRequest("GET", "/v1/status", nil)
	a := New(Config{Peers: f}, fake.NewSource(nil)).askOne(t.Context(), r, nil, Peer{Name: "n2", Contact: api.Alive}, &left)
	if a.Status != http.StatusBadGateway || a.Answer != nil || !strings.Contains(a.Error.Message+a.Error.Try, "--node") {
		t.Errorf("more than what is left: %+v", a)
	}
}
