package fleet

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
)

// TestRemaining: what each node has open is shown and added up, nodes that do not say are named, and a wait
// ends when nothing is left, or when its time is over.
func TestRemaining(t *testing.T) {
	node := func(name string, drained float64, open int) cluster.Answer {
		return cluster.Answer{Cluster: "east", Node: name, Nodes: []api.Node{{Cluster: "east", Name: "n1"}, {Cluster: "east", Name: "n2"}},
			Clusters: []api.Cluster{{Name: "east", Drained: drained, Open: &open}}}
	}
	undrained := cluster.Answer{Cluster: "east", Node: "n1", Clusters: []api.Cluster{{Name: "east"}}}
	all := func(a ...cluster.Answer) []cluster.Answer { return a }
	refused := errors.New("context c2: ask the daemon on n2: refused")
	for name, tc := range map[string]struct {
		cluster  string
		wait     bool
		asked    [][]cluster.Answer // one after the other; the last stays
		err      error
		code     int
		messages []string
	}{
		"some are open":    {"east", false, [][]cluster.Answer{all(node("n1", 1, 2), node("n2", 1, 7))}, nil, 0, []string{"cluster east is drained 100 %: 9 open connections on 2 nodes", "east/n2  7\neast/n1  2"}},
		"one did not say":  {"east", false, [][]cluster.Answer{all(node("n1", 1, 2))}, refused, 0, []string{"2 open connections on 1 node", "warn context c2: ask the daemon on n2: refused", "warn unknown of 1 node", "east/n2"}},
		"not drained":      {"east", false, [][]cluster.Answer{all(undrained)}, nil, 0, []string{"cluster east is not drained; drain it: strait cluster drain east"}},
		"no such cluster":  {"moon", false, [][]cluster.Answer{all(undrained)}, nil, 2, []string{`no daemon knows a cluster "moon"`}},
		"no answers":       {"east", false, [][]cluster.Answer{nil}, nil, 3, []string{"no daemon answers"}},
		"a wait that ends": {"east", true, [][]cluster.Answer{all(node("n1", 0.5, 1), node("n2", 1, 0)), all(node("n1", 1, 0), node("n2", 1, 0))}, nil, 0, []string{"drained 50 %: 1 open connection on 2 nodes", "drained 100 %: 0 open connections on 2 nodes"}},
		"a wait in vain":   {"east", true, [][]cluster.Answer{all(node("n1", 1, 0))}, nil, 4, []string{"unknown of 1 node", "not done in time"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			a := &cli.App{Stdout: &out, ASCII: true}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 2*askEvery-askEvery/2, cli.Exit(cli.ExitWaitOver, errors.New("not done in time")))
			defer cancel()
			at, start := 0, time.Now()
			err := remaining(ctx, a, tc.cluster, tc.wait, func(context.Context) ([]cluster.Answer, error) {
				now := tc.asked[min(at, len(tc.asked)-1)]
				at++
				return now, tc.err
			})
			code, text := 0, out.String()
			var exit *cli.ExitError
			if errors.As(err, &exit) {
				code, text = exit.Code, text+err.Error()
			}
			if code != tc.code {
				t.Errorf("exit code %d (%v), want %d", code, err, tc.code)
			}
			for _, want := range tc.messages {
				if !strings.Contains(text, want) {
					t.Errorf("after %s it does not say %q:\n%s", time.Since(start), want, text)
				}
			}
		})
	}
}
