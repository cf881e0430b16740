package logring

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is logged is kept with its attributes and groups, and reaches the next handler as before. What that
// one does not want is kept from info on.
func TestHandler(t *testing.T) {
	var out bytes.Buffer
	r := New()
	log := slog.New(r.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
	log.Debug("not kept")
	log.Info("kept", "node", "us-east/n1")
	part := log.With("part", "gossip").WithGroup("peer")
	part.Warn("no answer", "addr", "10.0.0.1", slog.Group("last", "msg", "a b"))
	lines, dropped := r.Lines()
	var got []string
	for _, l := range lines {
		if time.Since(l.Time) > time.Minute || l.Time.IsZero() {
			t.Errorf("time %s", l.Time)
		}
		got = append(got, l.Level+" | "+l.Message+" | "+l.Attrs)
	}
	want := []string{"INFO | kept | node=us-east/n1", `WARN | no answer | part=gossip peer.addr=10.0.0.1 peer.last.msg="a b"`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || dropped != 0 {
		t.Errorf("%d dropped, and\n%s\nwant\n%s", dropped, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="no answer" part=gossip peer.addr=10.0.0.1 peer.last.msg="a b"`) {
		t.Errorf("the next handler wrote %s", text)
	}
}

// Whatever is logged, the last lines are kept, in order and within bounds.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := New()
		log := slog.New(r.Handler(slog.DiscardHandler))
		n := rapid.IntRange(1, 4000).Draw(rt, "lines")
		text := strings.Repeat(rapid.SampledFrom([]string{"", "x", "ä", "…"}).Draw(rt, "text"), rapid.IntRange(0, 3000).Draw(rt, "length"))
		for i := range n {
			log.Info(fmt.Sprint(i), "text", text)
		}
		lines, dropped := r.Lines()
		bytes := 0
		for i, l := range lines {
			bytes += len(l.Message) + len(l.Attrs)
			if l.Message != fmt.Sprint(n-len(lines)+i) || len(l.Attrs) > maxLine || strings.ToValidUTF8(l.Attrs, "") != l.Attrs {
				rt.Fatalf("line %d of %d: %d bytes of %q", i, len(lines), len(l.Attrs), l.Message)
			}
		}
		if bytes > maxBytes || uint64(len(lines))+dropped != uint64(n) || len(lines) == 0 || dropped > 0 && r.bytes < maxBytes-maxLine-overhead-10 {
			rt.Fatalf("%d lines of %d bytes, %d dropped of %d", len(lines), bytes, dropped, n)
		}
	})
}

// Several goroutines log while another one reads.
func TestConcurrent(t *testing.T) {
	r := New()
	log := slog.New(r.Handler(slog.DiscardHandler))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			mine := log.With("worker", i)
			for j := range 500 {
				mine.Log(context.Background(), slog.LevelInfo, "line", "n", j)
				r.Lines()
			}
		})
	}
	wg.Wait()
	next := [4]int{}
	lines, dropped := r.Lines()
	for _, l := range lines {
		var w, n int
		if _, err := fmt.Sscanf(l.Attrs, "worker=%d n=%d", &w, &n); err != nil || n < next[w] {
			t.Fatalf("%+v: %v", l, err)
		}
		next[w] = n + 1
	}
	if len(lines)+int(dropped) != 2000 {
		t.Errorf("%d lines, and %d before", len(lines), dropped)
	}
}
