package main

import (
	"context"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// holders are the daemons of a cluster, by node, with the records that they hold. Those without a list
// do not answer. It is a client.Transport.
type holders struct {
	cluster string
	nodes   map[string][]api.Member
}

// Get implements client.Transport.
func (h holders) Get(_ context.Context, path string) (io.ReadCloser, error) {
	u, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	_, node, both := strings.Cut(u.Query().Get("node"), "/")
	if !both {
		if node = u.Query().Get("node"); node == "" {
			node = h.cluster + "-1"
		}
	}
	from := api.Viewpoint{Cluster: h.cluster, Node: node, Clusters: 2, Time: now}
	if u.Path == "/v1/explain" {
		service := serve()
		service.Exporters = []string{"us-east", "eu-west"}
		service.Frontends[0].Endpoints = []api.Endpoint{{Addr: addrPort("10.1.3.10:8080"), Cluster: "us-east", Node: "us-east-3"}, {Addr: addrPort("10.1.2.10:8080"), Cluster: "us-east", Node: "us-east-2"}}
		service.Frontends = service.Frontends[:1]
		e, _ := api.NewExplanation(api.NewServiceList(from, []api.Service{service}), service.Name)
		return body(e), nil
	}
	if u.Path != "/v1/members" || h.nodes[node] == nil {
		return nil, &api.Failure{Reason: api.NoAnswer, Message: "node " + node + ": straitd does not answer in time", Try: "ask again"}
	}
	return body(api.NewMemberList(from, h.nodes[node])), nil
}

// held is a record that came from a node some time ago, or was written then.
func held(name, stamp, from string, since time.Duration) api.Member {
	m := api.Member{State: api.Alive, Stamp: stamp}
	m.Cluster, m.Node, _ = strings.Cut(name, "/")
	switch from {
	case "":
	case "self":
		m.Written = ago(since)
	default:
		m.Received, m.From = ago(since), from
	}
	return m
}

// tracedClusters are two clusters. The record of us-east hangs between the two; that of us-east-2 has come;
// us-east-3 does not answer.
func tracedClusters() []holders {
	return []holders{
		{"eu-west", map[string][]api.Member{
			"eu-west-1": {
				held("eu-west", "1763640000000/4", "self", time.Hour), held("eu-west/eu-west-1", "1763640000000000000/31", "self", 9*time.Second),
				held("us-east", "1763641000000/7", "eu-west/eu-west-2", 12*time.Minute),
				held("us-east/us-east-2", "1763641000000000000/12", "eu-west/eu-west-2", 41*time.Second),
				held("us-east/us-east-3", "1763642000000000000/5", "", 0),
			},
			"eu-west-2": {
				held("us-east", "1763641000000/7", "us-east/us-east-1", 12*time.Minute+20*time.Millisecond),
				held("us-east/us-east-2", "1763641000000000000/12", "us-east/us-east-1", 41*time.Second+2*time.Millisecond),
			},
		}},
		{"us-east", map[string][]api.Member{
			"us-east-1": {
				held("us-east", "1763641000000/9", "self", 95*time.Second),
				held("us-east/us-east-2", "1763641000000000000/12", "us-east/us-east-2", 41*time.Second+300*time.Millisecond),
			},
			"us-east-2": {held("us-east/us-east-2", "1763641000000000000/12", "self", 41*time.Second+301*time.Millisecond)},
		}},
	}
}

// TestTrace: the ways of a service's records from one cluster to another, in each format, and what is
// said where they end.
func TestTrace(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		code int
	}{
		"trace":         {"default/serve --context eu-west --context us-east", cli.ExitProblem},
		"trace-ascii":   {"default/serve --context eu-west --context us-east --ascii", cli.ExitProblem},
		"trace-wide":    {"us-east/us-east-2 --context eu-west --context us-east -o wide", 0},
		"trace-json":    {"us-east/us-east-2 --context eu-west --context us-east -o json", 0},
		"trace-one":     {"us-east --context eu-west", cli.ExitUnknown},
		"trace-unasked": {"us-east --context eu-west --context c9", cli.ExitUnknown},
		"trace-own":     {"eu-west/eu-west-1 --context eu-west", 0},
		"help-trace":    {"--help", 0},
	} {
		e := world(append([]string{"trace"}, strings.Fields(c.args)...)...)
		e.Reach = reachHolders
		r := e.run(t)
		if r.code != c.code {
			t.Errorf("strait trace %s: exit code %d, want %d: %s", c.args, r.code, c.code, r.stderr)
		}
		golden(t, name, r)
	}
}

func reachHolders(_ context.Context, p cli.Place) (*client.Client, error) {
	all := tracedClusters()
	i := slices.IndexFunc(all, func(h holders) bool { return h.cluster == p.Context })
	if i < 0 {
		return nil, &api.Failure{Reason: api.NoAnswer, Message: "context " + p.Context + " leads nowhere", Try: "check it"}
	}
	return client.Over(all[i], "context "+p.Context), nil
}

// TestTraceCompletion: services and writers of records are offered.
func TestTraceCompletion(t *testing.T) {
	socket, _ := startServer(t, wellView())
	got := world("__complete", "trace", "").on(socket).run(t)
	for _, want := range []string{"default/serve\n", "\nus-east\n", "\neu-central/eu-central-n1\n", ":4"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in %q", want, got.stdout)
		}
	}
}

// TestTraceOfOlderDaemon: a daemon that does not say which versions it holds is called by its name.
func TestTraceOfOlderDaemon(t *testing.T) {
	socket, _ := startServer(t, wellView())
	if got := world("trace", "us-east").on(socket).run(t); got.code != cli.ExitUnknown || !strings.Contains(got.stdout, "straitd on us-east/us-east-n1 is of an earlier version") {
		t.Errorf("exit code %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
}
