package gossip

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// lines is a log that counts its lines.
type lines struct {
	mu sync.Mutex
	n  int
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += bytes.Count(b, []byte("\n"))
	return len(b), nil
}

// TestGarbage: datagrams with garbage, each from an address of its own, are counted, and cost neither
// memory, nor log, nor the sight of other Problems.
func TestGarbage(t *testing.T) {
	var log lines
	c := config(origin("a", "n1"))
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	d := start(t, c)
	listening(t, c.Bind)
	noise := make([]byte, 600)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	labelled := append(append([]byte{244, 6}, "strait"...), 1) // what memberlist would decrypt
	labelled = append(labelled, noise...)
	noise[0] = 0
	send := func(n int) {
		for i := range n {
			src := netip.AddrFrom4([4]byte{127, 100 + byte(i>>16), byte(i >> 8), byte(i)})
			s, err := net.DialUDP("udp", &net.UDPAddr{IP: src.AsSlice()}, net.UDPAddrFromAddrPort(c.Bind))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = s.Write([][]byte{labelled, noise}[i%2])
			s.Close()
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	send(20_000)
	eventually(t, "the garbage is reported", func() bool {
		return d.hasProblem("datagrams", "more than 1000", "127.100.")
	})
	grown := 0
	eventually(t, "what was sent is not kept", func() bool {
		grown = (int(heap()) - int(before)) >> 10
		return grown < 4<<10
	})
	problems := d.Problems()
	log.mu.Lock()
	defer log.mu.Unlock()
	t.Logf("%d Problems, %d lines of log, %d KiB: %v", len(problems), log.n, grown, problems)
	if len(problems) > 3 || log.n > 50 {
		t.Errorf("%d Problems, %d lines of log", len(problems), log.n)
	}
	for _, p := range problems {
		if strings.Contains(p.String(), "gossip key differs") {
			t.Errorf("a single spoofed source is named: %v", p)
		}
	}
	if refused := d.Refused(); refused["datagram"] < 1000 || refused["datagram_key"] < 1000 {
		t.Errorf("refused: %v", refused)
	}
}
