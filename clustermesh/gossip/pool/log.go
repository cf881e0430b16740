package pool

import (
	"context"
	"log"
	"log/slog"
	"net/netip"
	"regexp"
	"strings"
)

// memberLog writes memberlist's log lines to our log, at debug level. Two things that matter to
// people are reported by memberlist only there: packets that it cannot decrypt, and peers that UDP
// does not reach.
type memberLog struct {
	log      *slog.Logger
	wrongKey func(addr string)
	noUDP    func(peer string)
}

var (
	fromAddr = regexp.MustCompile(`from=(\S+)`)
	tcpOnly  = regexp.MustCompile(`Was able to connect to (\S+) over TCP but UDP probes failed`)
)

func (m *memberLog) logger() *log.Logger { return log.New(m, "", 0) }

// Write implements io.Writer; log.Logger writes one line at a time.
func (m *memberLog) Write(b []byte) (int, error) {
	line := strings.TrimSpace(string(b))
	m.log.Log(context.Background(), slog.LevelDebug, line)
	if strings.Contains(line, "No installed keys could decrypt") || strings.Contains(line, "Decrypt packet failed") {
		if from := fromAddr.FindStringSubmatch(line); from != nil {
			if ap, err := netip.ParseAddrPort(from[1]); err == nil {
				m.wrongKey(ap.Addr().Unmap().String())
			}
		}
	}
	if peer := tcpOnly.FindStringSubmatch(line); peer != nil {
		m.noUDP(peer[1])
	}
	return len(b), nil
}
