package main

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// busyCluster is a cluster of two nodes, of which the second does not answer if it is down. Each time that
// it is asked what was counted, two seconds have passed.
type busyCluster struct {
	name string
	down bool
	asks *atomic.Int64
}

// Get implements client.Transport.
func (b busyCluster) Get(_ context.Context, path string) (io.ReadCloser, error) {
	u, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	var items []api.NodeAnswer
	asks := b.asks.Add(1)
	for _, node := range []string{"n1", "n2"} {
		from := api.Viewpoint{Cluster: b.name, Node: node, Time: now.Add(time.Duration(asks) * 2 * time.Second)}
		f := flows()[0]
		f.Client.Cluster, f.Client.Node = b.name, node
		var answer any
		switch u.Path {
		case "/v1/services":
			return body(api.NewServiceList(from, []api.Service{{Name: "default/idle"}})), nil
		case "/v1/flows":
			answer = api.NewFlowList(from, []api.Flow{f}, u.Query().Get("service"), "")
		case "/v1/traffic":
			answer = api.NewTrafficList(from, func(each func(api.Traffic)) {
				n := uint64(asks) * 20
				each(api.Traffic{Service: "default/serve", Connects: n, Refused: 1, Backends: []api.BackendTraffic{{Cluster: "us-east", Connects: n}}})
			}, []api.Flow{f}, "")
		}
		item := api.NodeAnswer{Node: node, Status: 200}
		if item.Answer, err = json.Marshal(answer); err != nil {
			return nil, err
		}
		if b.down && node == "n2" {
			e := api.NewError("node n2: straitd does not answer in time", "ask again")
			item.Answer, item.Error = nil, &e
		}
		items = append(items, item)
	}
	return body(api.NewNodeAnswerList(api.Viewpoint{Cluster: b.name, Node: "n1"}, items)), nil
}

// busy is a world in which the contexts c1 and c2 lead to busy clusters.
func busy(down bool, args ...string) env {
	e := world(args...)
	clusters := map[string]busyCluster{"c1": {"c1", false, new(atomic.Int64)}, "c2": {"c2", down, new(atomic.Int64)}}
	e.Reach = func(_ context.Context, p cli.Place) (*client.Client, error) {
		return client.Over(clusters[p.Context], "context "+p.Context), nil
	}
	return e
}

// TestFlowsOfClusters: the flows of all nodes of two clusters are one list; a service without any is no
// error, and one that does not exist is; a node that does not answer is named.
func TestFlowsOfClusters(t *testing.T) {
	both := []string{"--context", "c1", "--context", "c2"}
	r := busy(false, append([]string{"flows", "default/serve"}, both...)...).run(t)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != 0 || len(lines) != 6 || lines[0] != "clients on 4 nodes of 2 clusters" {
		t.Fatalf("code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for i, node := range []string{"c1/n1", "c1/n2", "c2/n1", "c2/n2"} {
		if !strings.HasPrefix(lines[2+i], "shop/web-1") || !strings.Contains(lines[2+i], node) {
			t.Errorf("row %d: %q", i, lines[2+i])
		}
	}
	if r := busy(false, append([]string{"flows", "default/idle"}, both...)...).run(t); r.code != 0 || !strings.Contains(r.stderr, "no socket is open") {
		t.Errorf("a service without a client: %+v", r)
	}
	if r := busy(false, append([]string{"flows", "default/idel"}, both...)...).run(t); r.code != cli.ExitProblem || !strings.Contains(r.stderr, "did you mean default/idle?") {
		t.Errorf("no service: %+v", r)
	}
	r = busy(true, append([]string{"flows"}, both...)...).run(t)
	if r.code != cli.ExitUnknown || !strings.Contains(r.stdout, "clients on 3 of 4 nodes") || !strings.Contains(r.stdout, "✗ c2/n2: node n2: straitd does not answer in time") {
		t.Errorf("a node is down: %+v", r)
	}
}

// TestTopOfClusters: rates are of the time between two answers of each node, and add up.
func TestTopOfClusters(t *testing.T) {
	for args, want := range map[string]string{
		"top":          "default/serve  48    40     0          80.0 KiB  28.0 MiB  us-east 100 %",
		"top clusters": "us-east  48    40     80.0 KiB  28.0 MiB",
		"top nodes":    "c1/n1  12    10     0          20.0 KiB  7.0 MiB   us-east 100 %",
	} {
		r := busy(false, append(strings.Fields(args), "--seconds", "1", "--context", "c1", "--context", "c2")...).run(t)
		if r.code != 0 || !strings.HasPrefix(r.stdout, "clients on 4 nodes of 2 clusters · counted for 2.0 s\n") || !strings.Contains(r.stdout, want+"\n") {
			t.Errorf("%s: code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	if r := busy(true, "top", "--seconds", "1", "--context", "c2", "-o", "json").run(t); r.code != cli.ExitUnknown || !strings.Contains(r.stdout, `"newPerSecond": 10`) {
		t.Errorf("a node is down: %+v", r)
	}
	for _, args := range []string{"top pods", "top services nodes", "top --sort size", "top --seconds 0", "top --watch --file x"} {
		if r := world(strings.Fields(args)...).run(t); r.code != cli.ExitUsage {
			t.Errorf("%s: code %d, %s", args, r.code, r.stderr)
		}
	}
}
