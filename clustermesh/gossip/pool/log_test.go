package pool

import (
	"log/slog"
	"strings"
	"testing"
)

func TestMemberLog(t *testing.T) {
	var udp, text string
	var out strings.Builder
	m := &memberLog{
		log:   slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		noUDP: func(p string) { udp = p },
	}
	m.logger().Printf("[DEBUG] memberlist: Stream connection from=%s", "192.0.2.7:7946")
	m.logger().Printf("[WARN] memberlist: Was able to connect to %s over TCP but UDP probes failed, network may be misconfigured", "a/n1/x")
	if text = out.String(); udp != "a/n1/x" || strings.Count(text, "level=DEBUG") != 2 {
		t.Errorf("udp %q, log %q", udp, text)
	}
}
