package pool

import (
	"context"
	"log"
	"log/slog"
	"regexp"
	"strings"
)

// memberLog writes memberlist's log lines to our log, at debug level. That UDP does not reach a peer
// is reported by memberlist only there, and matters to people.
type memberLog struct {
	log   *slog.Logger
	noUDP func(peer string)
}

var tcpOnly = regexp.MustCompile(`Was able to connect to (\S+) over TCP but UDP probes failed`)

func (m *memberLog) logger() *log.Logger { return log.New(m, "", 0) }

// Write implements io.Writer; log.Logger writes one line at a time.
func (m *memberLog) Write(b []byte) (int, error) {
	line := strings.TrimSpace(string(b))
	m.log.Log(context.Background(), slog.LevelDebug, line)
	if peer := tcpOnly.FindStringSubmatch(line); peer != nil {
		m.noUDP(peer[1])
	}
	return len(b), nil
}
