package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/problem"
)

// farCluster is a cluster that a context leads to. It is a client.Transport.
type farCluster struct {
	name string
	// nodes are its nodes, sorted; those without a status do not answer.
	nodes []farMachine
	asked *[]string
}

// asking guards what clusters note of being asked, which is at the same time.
var asking sync.Mutex

type farMachine struct {
	name   string
	status *api.Status
}

// Get implements client.Transport.
func (f farCluster) Get(_ context.Context, path string) (io.ReadCloser, error) {
	asking.Lock()
	*f.asked = append(*f.asked, f.name+" "+path)
	asking.Unlock()
	u, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	switch {
	case u.Path == "/v1/nodes":
		var nodes []api.Node
		for _, n := range f.nodes {
			nodes = append(nodes, api.Node{Cluster: f.name, Name: n.name, Contact: api.Alive})
		}
		lost := api.Node{Cluster: "c3", Name: "n1", Contact: api.Alive}
		if f.name == "c2" {
			lost.Contact = "quiet"
		}
		return body(api.NewNodeList(api.Viewpoint{Cluster: f.name, Node: f.nodes[0].name}, append(nodes, lost))), nil
	case u.Path != "/v1/status":
		return nil, &api.Failure{Reason: api.NotFound, Message: "this straitd has no " + u.Path, Try: "ask something else"}
	case u.Query().Get("node") != api.EveryNode:
		return body(api.NewStatusAnswer(*f.nodes[0].status)), nil
	}
	var items []api.NodeAnswer
	for _, n := range f.nodes {
		item := api.NodeAnswer{Node: n.name, Status: 200, Contact: api.Alive}
		if n.status == nil {
			e := api.NewError("node "+n.name+": straitd does not answer in time", "ask again")
			item.Error = &e
		} else {
			item.Answer, _ = json.Marshal(api.NewStatusAnswer(*n.status))
		}
		items = append(items, item)
	}
	return body(api.NewNodeAnswerList(api.Viewpoint{Cluster: f.name, Node: f.nodes[0].name}, items)), nil
}

func body(v any) io.ReadCloser {
	text, _ := json.Marshal(v)
	return io.NopCloser(bytes.NewReader(text))
}

// farNode is a node of cluster c1 or c2 that is well.
func farNode(cluster, node string, change func(*api.Status)) farMachine {
	s := &api.Status{Cluster: cluster, Node: node, Version: "v1", Ready: true, Datapath: api.Datapath{Attached: true, Mesh: "kernel"}}
	for _, name := range []string{"c1", "c2"} {
		c := api.Cluster{Name: name, State: api.Joined, Nodes: 2, Alive: 2, Exports: 3, Endpoints: 9}
		if name == cluster {
			c.State = api.Here
		}
		s.Clusters = append(s.Clusters, c)
	}
	if change != nil {
		change(s)
	}
	return farMachine{node, s}
}

// reaching is a world in which the contexts lead to clusters of their names.
func reaching(clusters []farCluster, args ...string) (e env, asked *[]string) {
	e, asked = world(args...), &[]string{}
	e.Reach = func(_ context.Context, p cli.Place) (*client.Client, error) {
		i := slices.IndexFunc(clusters, func(f farCluster) bool { return f.name == p.Context })
		if i < 0 {
			return nil, &api.Failure{Reason: api.NoAnswer, Message: "context " + p.Context + " leads nowhere", Try: "check it", Cause: cli.ErrNoContext}
		}
		f := clusters[i]
		f.asked = asked
		return client.Over(f, "context "+p.Context), nil
	}
	return e, asked
}

func clusterset(change func(*api.Status), dead bool) []farCluster {
	last := farNode("c2", "n2", nil)
	if dead {
		last.status = nil
	}
	return []farCluster{
		{name: "c1", nodes: []farMachine{farNode("c1", "n1", func(s *api.Status) { s.Leader = true }), farNode("c1", "n2", change)}},
		{name: "c2", nodes: []farMachine{farNode("c2", "n1", func(s *api.Status) { s.Leader = true }), last}},
	}
}

// TestStatusOfClusters: all nodes of two clusters are one screen. What nodes see differently has a
// row of its own with their names.
func TestStatusOfClusters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*api.Status)
		dead   bool
		code   int
	}{
		"well": {},
		"differing": {change: func(s *api.Status) {
			s.Clusters[1].State, s.Clusters[1].Alive = api.Held, 0
			s.Problems = []problem.Problem{{Code: "STR5102", Object: "cluster c2", Message: "is not heard"}}
		}, code: cli.ExitProblem},
		"unanswered": {dead: true, code: cli.ExitUnknown},
	} {
		e, _ := reaching(clusterset(c.change, c.dead), "status", "--context", "c1", "--context", "c2")
		r := e.run(t)
		if r.code != c.code || r.stderr != "" {
			t.Errorf("%s: exit code %d, want %d; stderr %q", name, r.code, c.code, r.stderr)
		}
		golden(t, "status-contexts-"+name, r)
	}
}

// TestStatusOfClustersAsData: the data has each node's own status.
func TestStatusOfClustersAsData(t *testing.T) {
	e, _ := reaching(clusterset(nil, true), "status", "--context", "c1", "--context", "c2", "-o", "json")
	r := e.run(t)
	var list struct {
		Kind  string
		Items []struct {
			Context, Cluster, Node, Error string
			Status                        *api.Status
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || list.Kind != "StatusList" || len(list.Items) != 4 {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	for _, i := range list.Items {
		if i.Context != i.Cluster || (i.Status == nil) != (i.Error != "") || i.Status != nil && i.Status.Node != i.Node {
			t.Errorf("%+v", i)
		}
	}
}

// TestContext: a query asks the cluster of the context, and there the node that is named. Without a
// context and a socket, it asks the current context.
func TestContext(t *testing.T) {
	clusters := clusterset(nil, false)
	for _, c := range []struct {
		args  string
		asked string
	}{
		{"nodes --context c2", "c2 /v1/nodes"},
		{"explain shop/cart --context c1 --node n2", "c1 /v1/explain?node=n2&service=shop%2Fcart"},
		{"status --context c1", "c1 /v1/status?node=%2A"},
		{"status --context c1 --node n2", "c1 /v1/status?node=n2"},
	} {
		e, asked := reaching(clusters, strings.Fields(c.args)...)
		e.run(t)
		if !slices.Contains(*asked, c.asked) {
			t.Errorf("strait %s asks %q, want %q", c.args, *asked, c.asked)
		}
	}
	current := clusters[0]
	current.name = ""
	e, asked := reaching([]farCluster{current}, "nodes")
	e.run(t)
	if !slices.Contains(*asked, " /v1/nodes") {
		t.Errorf("without a socket, strait nodes asks %q", *asked)
	}
	e, _ = reaching(nil, "nodes")
	if r := e.run(t); r.code != cli.ExitUnknown || !strings.Contains(r.stderr, "there is no socket") || !strings.Contains(r.stderr, "name a cluster with --context") {
		t.Errorf("without socket and context: exit code %d, %s", r.code, r.stderr)
	}
	e, asked = reaching([]farCluster{current}, "nodes", "--kubeconfig", "other")
	socket, _ := startServer(t, wellView())
	e.on(socket).run(t)
	if !slices.Contains(*asked, " /v1/nodes") {
		t.Errorf("with a kubeconfig beside a socket, strait nodes asks %q", *asked)
	}
	for _, args := range []string{"nodes --node *", "explain shop/cart --node *", "support bundle --node n1 " + filepath.Join(t.TempDir(), "b")} {
		e, _ = reaching(clusters, append(strings.Fields(args), "--context", "c1")...)
		if r := e.run(t); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--node") {
			t.Errorf("strait %s: exit code %d, %s", args, r.code, r.stderr)
		}
	}
	e, _ = reaching(clusters, "graph", "--context", "c1", "--context", "c2")
	if r := e.run(t); r.code != cli.ExitUsage {
		t.Errorf("a graph of two contexts: exit code %d, %s", r.code, r.stderr)
	}
}

// TestOneNodeOfACluster: where only a command in a daemon's pod can be run, its node is shown, and why no other.
func TestOneNodeOfACluster(t *testing.T) {
	socket, _ := startServer(t, wellView())
	e := world("status", "--context", "c1")
	e.Reach = func(context.Context, cli.Place) (*client.Client, error) {
		return client.OnCommands(func(ctx context.Context, args ...string) (client.Output, error) {
			r := world(args...).on(socket).run(t)
			return client.Output{Stdout: []byte(r.stdout), Stderr: []byte(r.stderr), Code: r.code}, nil
		}, "node n1"), nil
	}
	if r := e.run(t); r.code != 0 || !strings.Contains(r.stdout, "seen from  1 node of 1 cluster") || !strings.Contains(r.stderr, "only node us-east-n1 was asked: ") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestListsOfContexts: lists of several contexts are one. A row that not all daemons see in the
// same way has the contexts, and a context that does not answer does not keep the others from being
// shown.
func TestListsOfContexts(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		code int
	}{
		"nodes-contexts":            {"nodes --context c1 --context c2", 0},
		"nodes-contexts-unanswered": {"nodes --context c1 --context c9", cli.ExitUnknown},
		"nodes-contexts-name":       {"nodes c3 -o name --context c1 --context c2", 0},
		"nodes-contexts-json":       {"nodes n2 -o json --context c1 --context c9", cli.ExitUnknown},
	} {
		e, _ := reaching(clusterset(nil, false), strings.Fields(c.args)...)
		r := e.run(t)
		if r.code != c.code {
			t.Errorf("strait %s: exit code %d, want %d: %s", c.args, r.code, c.code, r.stderr)
		}
		golden(t, name, r)
	}
	e, _ := reaching(clusterset(nil, false), strings.Fields("nodes nowhere --context c1 --context c2")...)
	if r := e.run(t); r.code != cli.ExitProblem || !strings.Contains(r.stderr, "nowhere") {
		t.Errorf("a node that no context has: exit code %d, %s", r.code, r.stderr)
	}
}

// TestVersionsOfClusters: the versions of all daemons are one answer, which says whether they
// differ.
func TestVersionsOfClusters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*api.Status)
		dead   bool
		code   int
		want   []string
	}{
		"same":       {want: []string{"straitd  v1 on 4 nodes: c1/n1, c1/n2, c2/n1 and 1 more", "another version than this program"}},
		"older":      {change: func(s *api.Status) { s.Version = "v0" }, want: []string{"straitd  v0 on 1 node: c1/n2", "the daemons have 2 versions"}},
		"unanswered": {dead: true, code: cli.ExitUnknown, want: []string{"straitd  v1 on 3 nodes", "✗ c2/n2"}},
	} {
		e, _ := reaching(clusterset(c.change, c.dead), "version", "--context", "c1", "--context", "c2")
		r := e.run(t)
		for _, want := range c.want {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("%s: no %q in\n%s", name, want, r.stdout)
			}
		}
		if r.code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", name, r.code, c.code, r.stderr)
		}
	}
}

// TestCompletionOfClusters: shells are offered contexts, nodes of the cluster that is asked, and
// codes.
func TestCompletionOfClusters(t *testing.T) {
	for args, want := range map[string]string{
		"status --context c":                       "c1 c2",
		"cluster drain --context c":                "c1 c2",
		"explain --context c2 --node ":             "n1 n2",
		"explain shop/cart --context c1 --node n2": "n2",
		"help STR81":                               "STR8101",
		"nodes revoke --context c":                 "c1 c2",
	} {
		e, _ := reaching(clusterset(nil, false), append([]string{"__complete"}, strings.Split(args, " ")...)...)
		e.ContextNames = func(string) []string { return []string{"c1", "c2", "other"} }
		r := e.run(t)
		if got := strings.Join(strings.Fields(r.stdout), " "); !strings.HasPrefix(got, want) {
			t.Errorf("strait %s: completes %q, want %q; %s", args, got, want, r.stderr)
		}
	}
}

// TestCalledByKubectl: as a plugin of kubectl, the help has the command as people write it.
func TestCalledByKubectl(t *testing.T) {
	e := world("status", "--help")
	e.Program = "kubectl-strait"
	if r := e.run(t); !strings.Contains(r.stdout, "kubectl strait status [flags]") {
		t.Errorf("%s", r.stdout)
	}
}

// TestCheck: the checks of all nodes are one list, in each format, and the exit code is that of the
// worst.
func TestCheck(t *testing.T) {
	ill := func(s *api.Status) {
		s.Clusters[1].State, s.Clusters[1].Alive, s.Datapath.Attached = api.Held, 0, false
		s.Problems = []problem.Problem{{Code: "STR5102", Object: "gossip seed 192.0.2.1:7946", Message: "does not answer", Try: "check the address"}}
	}
	for name, c := range map[string]struct {
		change func(*api.Status)
		dead   bool
		args   string
		code   int
	}{
		"check":            {args: "check"},
		"check-ill":        {change: ill, args: "check", code: cli.ExitProblem},
		"check-short":      {change: ill, args: "check -o short", code: cli.ExitProblem},
		"check-junit":      {change: ill, dead: true, args: "check -o junit", code: cli.ExitProblem},
		"check-json":       {dead: true, args: "check -o json", code: cli.ExitUnknown},
		"check-unanswered": {dead: true, args: "check -o short", code: cli.ExitUnknown},
	} {
		e, _ := reaching(clusterset(c.change, c.dead), strings.Fields(c.args+" --context c1 --context c2")...)
		e.Version = "v1"
		r := e.run(t)
		if r.code != c.code {
			t.Errorf("strait %s: exit code %d, want %d: %s", c.args, r.code, c.code, r.stderr)
		}
		golden(t, name, r)
	}
	socket, _ := startServer(t, wellView())
	if r := world("check").on(socket).run(t); r.code != 0 || !strings.Contains(r.stdout, "✓ every daemon answers") {
		t.Errorf("check of this node: exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := world("check", "-o", "wide").on(socket).run(t); r.code != cli.ExitUsage {
		t.Errorf("an unknown format: exit code %d", r.code)
	}
}

// TestWaitForClusters: --wait ends once all nodes are well, and says meanwhile which are not.
func TestWaitForClusters(t *testing.T) {
	clusters := clusterset(nil, true)
	var looks atomic.Int32
	e, _ := reaching(clusters, "status", "--wait", "--context", "c1", "--context", "c2")
	reach := e.Reach
	e.Reach = func(ctx context.Context, p cli.Place) (*client.Client, error) {
		if p.Context == "c2" && looks.Add(1) > 2 {
			back := clusterset(nil, false)
			back[1].asked = &[]string{}
			return client.Over(back[1], "context c2"), nil
		}
		return reach(ctx, p)
	}
	if r := e.run(t); r.code != 0 || !strings.Contains(r.stderr, "waiting (0.0s): c2/n2: straitd does not answer in time") || !strings.Contains(r.stdout, "4 nodes of 2 clusters") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	e, _ = reaching(clusters, "status", "--wait=300ms", "--context", "c1", "--context", "c2")
	if r := e.run(t); r.code != cli.ExitWaitOver || !strings.Contains(r.stdout, "3 of 4 nodes") {
		t.Errorf("exit code %d, want %d:\n%s%s", r.code, cli.ExitWaitOver, r.stdout, r.stderr)
	}
}
