package main

import (
	"encoding/json"
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
)

// TestPing: each way is a row, the last lines say what they mean, and the exit code is that of the
// outcome.
func TestPing(t *testing.T) {
	socket, _ := startServer(t, wellView())
	for name, c := range map[string]struct {
		to   string
		code int
	}{
		"ping":         {"west/well", cli.ExitOK},
		"ping-blocked": {"west/n3", cli.ExitProblem},
		"ping-nobody":  {"nobody", cli.ExitUsage},
	} {
		r := world("ping", c.to).on(socket).run(t)
		if r.code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", name, r.code, c.code, r.stderr)
		}
		golden(t, name, r)
	}
	var answer api.Ping
	r := world("ping", "west/n3", "-o", "json").on(socket).run(t)
	if err := json.Unmarshal([]byte(r.stdout), &answer); err != nil || answer.Outcome != api.PingFailed || len(answer.Ways) != 3 || r.code != cli.ExitProblem {
		t.Errorf("%v: %+v", err, r)
	}
	if r := world("ping", "west/well", "--node", "*").on(socket).run(t); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "one node") {
		t.Errorf("all nodes: %+v", r)
	}
}
