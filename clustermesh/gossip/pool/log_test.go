package pool

import (
	"log/slog"
	"strings"
	"testing"
)

func TestMemberLog(t *testing.T) {
	var key, udp, text string
	var out strings.Builder
	m := &memberLog{
		log:      slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		wrongKey: func(a string) { key = a }, noUDP: func(p string) { udp = p },
	}
	m.logger().Printf("[ERR] memberlist: Decrypt packet failed: %v from=%s", "No installed keys could decrypt the message", "192.0.2.7:7946")
	m.logger().Printf("[WARN] memberlist: Was able to connect to %s over TCP but UDP probes failed, network may be misconfigured", "a/n1/x")
	if text = out.String(); key != "192.0.2.7" || udp != "a/n1/x" || strings.Count(text, "level=DEBUG") != 2 {
		t.Errorf("key %q, udp %q, log %q", key, udp, text)
	}
}
