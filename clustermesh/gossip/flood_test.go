package gossip

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// TestStrangersHideNoProblem: a peer that has the gossip key makes a thousand Problems. A few are shown and
// logged, one says that there are more, and what is wrong with honest nodes is shown and logged all the same.
func TestStrangersHideNoProblem(t *testing.T) {
	var log bytes.Buffer
	c := signing(config(node("west", "n1")), pinned("west", "east"))
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range 1000 {
		o := node(fmt.Sprintf("invented-%d", i), "n1")
		refused := g.trust.Refuse(o, o, fmt.Errorf("it is nonsense"), time.Now())
		g.apply(replica.Output{Problems: []clustermesh.Problem{refused}})
		g.mu.Unlock()
		g.unstated(node("west", fmt.Sprintf("invented-%d", i)), errNotRead)
		g.mu.Lock()
	}
	honest := clustermesh.Problem{Code: problem.StatementLate, Object: "node east/n1", Message: "its statement was not renewed"}
	g.problem("late", honest, problemLife)
	shown := g.problems.list(time.Now())
	if len(shown) != maxStrange+2 {
		t.Errorf("%d problems are shown, want %d of strangers, and two", len(shown), maxStrange)
	}
	text := fmt.Sprint(shown)
	for _, want := range []string{"its statement was not renewed", "there are at least 100 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("not shown: %s", want)
		}
	}
	if n := strings.Count(log.String(), "\n"); n > maxStrangeLogged+8 {
		t.Errorf("%d lines of log", n)
	}
	if !strings.Contains(log.String(), "its statement was not renewed") {
		t.Error("strangers kept an honest node's problem out of the log")
	}
}

// TestStrangersTextIsClean: escape sequences and lines that a peer puts into errors reach neither the log nor
// the Problems.
func TestStrangersTextIsClean(t *testing.T) {
	var log bytes.Buffer
	c := config(node("west", "n1"))
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	g.unstated(node("west", "n2"), fmt.Errorf("the API server says \x1b[2J\nlevel=ERROR %s", strings.Repeat("x", 1<<20)))
	ps := g.Problems()
	if len(ps) != 1 || strings.ContainsAny(ps[0].String(), "\x1b\n") {
		t.Errorf("problems %.200q", fmt.Sprint(ps))
	}
	if n := log.Len(); strings.ContainsAny(strings.TrimSpace(log.String()), "\x1b\n") || n == 0 || n > 16<<10 {
		t.Errorf("%d bytes of log: %.200q", n, log.String())
	}
}
