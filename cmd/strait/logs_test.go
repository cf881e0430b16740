package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

func (s *source) Logs() *api.LogList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return api.NewLogList(v.Status.Viewpoint(), []api.LogLine{
		{Time: ago(26 * time.Hour), Level: "INFO", Message: "starting", Attrs: "version=v1 cluster=us-east node=n1"},
		{Time: ago(20 * time.Minute), Level: "DEBUG+1", Message: "sent", Attrs: "part=gossip"},
		{Time: ago(20 * time.Minute), Level: "WARN", Message: "problem", Attrs: `code=STR2403 what="prefix \x1b[31m"`},
		{Time: ago(5 * time.Minute), Level: "ERROR", Message: "failed\x1b[31m", Attrs: "err=EPERM"},
	}, 12)
}

func TestLogs(t *testing.T) {
	well, _ := startServer(t, wellView())
	for _, c := range []struct{ name, args string }{
		{"logs", "logs --since 30h"},
		{"logs-warn", "logs --level warn"},
		{"logs-none", "logs --since 1m"},
		{"help-logs", "logs --help"},
	} {
		t.Run(c.name, func(t *testing.T) {
			golden(t, c.name, world(append(strings.Fields(c.args), "--socket", well)...).run(t))
		})
	}
	if r := world("logs", "--level", "loud", "--socket", well).run(t); r.code != cli.ExitUsage || !strings.Contains(r.stderr, `--level "loud" is none of`) {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	var l api.LogList
	r := world("logs", "-o", "json", "--level", "error", "--socket", well).run(t)
	if err := json.Unmarshal([]byte(r.stdout), &l); err != nil || l.Kind != api.KindLogs || len(l.Items) != 1 || l.Items[0].Attrs != "err=EPERM" || l.Dropped != 12 {
		t.Errorf("%s: %v", r.stdout, err)
	}
}

// TestLogsOfContexts: lines of several clusters are in the order of their times, and a bundle has them as the
// daemons did.
func TestLogsOfContexts(t *testing.T) {
	sockets := map[string]string{}
	for _, name := range []string{"c1", "c2"} {
		v := wellView()
		v.Status.Cluster = name
		sockets[name], _ = startServer(t, v)
	}
	ask := func(args ...string) result {
		e := world(append(args, "--context", "c1", "--context", "c2")...)
		e.Reach = func(_ context.Context, p cli.Place) (*client.Client, error) {
			return client.OnSocket(sockets[p.Context]), nil
		}
		return e.run(t)
	}
	r := ask("logs", "--since", "30h")
	// These daemons have no other nodes to ask, which is noted at the end.
	if r.code != cli.ExitUnknown || strings.Count(r.stdout, "starting") != 2 || strings.LastIndex(r.stdout, "starting") > strings.Index(r.stdout, "problem") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	file := t.TempDir() + "/bundle.tar.gz"
	ask("support", "bundle", file)
	later := world("logs", "--since", "30h", "--context", "c1", "--context", "c2", "--file", file).run(t)
	if later.code != 0 || later.stdout == "" || !strings.HasPrefix(r.stdout, later.stdout) {
		t.Errorf("exit code %d, from the bundle:\n%s%swant\n%s", later.code, later.stdout, later.stderr, r.stdout)
	}
}
