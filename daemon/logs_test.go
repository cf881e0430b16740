package daemon

import (
	"log/slog"
	"testing"

	"strait.io/strait/daemon/logring"
)

// TestLogs: a daemon that has no plan yet answers with what it has logged.
func TestLogs(t *testing.T) {
	d := &Daemon{config: Config{Cluster: "us-east", Node: "n1"}, lines: logring.New()}
	slog.New(d.lines.Handler(slog.DiscardHandler)).Warn("no answer", "part", "gossip")
	l := d.Logs()
	if len(l.Items) != 1 || l.Items[0].Message != "no answer" || l.Items[0].Attrs != "part=gossip" || l.SeenFrom.Cluster != "us-east" || l.SeenFrom.Node != "n1" {
		t.Errorf("%+v", l)
	}
}
