package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/problem"
)

// TestStrangersHideNoProblem: a peer that has the gossip key makes a thousand Problems. A few are shown and
// logged, one says that there are more, and what is wrong with honest nodes is shown and logged as well.
func TestStrangersHideNoProblem(t *testing.T) {
	n := New(signing(config(origin("west", "n1"), at), pinned("west", "east")), Saved{}, at)
	for i := range 1000 {
		o := origin(fmt.Sprintf("invented-%d", i), "n1")
		refused := n.trust.Refuse(o, o, fmt.Errorf("it is nonsense"), at)
		n.apply(replica.Output{Problems: []clustermesh.Problem{refused}})
		n.ReportRefusedRequest(origin("west", fmt.Sprintf("invented-%d", i)), errors.New("refused"), at)
	}
	honest := clustermesh.Problem{Code: problem.StatementLate, Object: "node east/n1", Message: "its statement was not renewed"}
	n.Report("late", honest, ProblemLife, at)
	shown := n.Problems(at)
	if len(shown) != maxStrange+2 {
		t.Errorf("%d problems are shown, want %d of strangers, and two", len(shown), maxStrange)
	}
	text := fmt.Sprint(shown)
	for _, want := range []string{"its statement was not renewed", "there are at least 100 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("not shown: %s", want)
		}
	}
	log := n.Take().Log
	if len(log) > maxStrangeLogged+8 {
		t.Errorf("%d lines of log", len(log))
	}
	if !strings.Contains(fmt.Sprint(log), "its statement was not renewed") {
		t.Error("strangers kept an honest node's problem out of the log")
	}
}

// TestStrangersTextIsClean: escape sequences and lines that a peer puts into errors reach neither the log nor
// the Problems.
func TestStrangersTextIsClean(t *testing.T) {
	n := New(config(origin("west", "n1"), at), Saved{}, at)
	n.ReportRefusedRequest(origin("west", "n2"), fmt.Errorf("the API server says \x1b[2J\nlevel=ERROR %s", strings.Repeat("x", 1<<20)), at)
	ps := n.Problems(at)
	if len(ps) != 1 || strings.ContainsAny(ps[0].String(), "\x1b\n") {
		t.Errorf("problems %.200q", fmt.Sprint(ps))
	}
	log := fmt.Sprint(n.Take().Log)
	if strings.ContainsAny(log, "\x1b\n") || len(log) < 10 || len(log) > 16<<10 {
		t.Errorf("%d bytes of log: %.200q", len(log), log)
	}
}

// TestProblemsExpire: a Problem that does not occur again goes after a while, and that is a change.
func TestProblemsExpire(t *testing.T) {
	n := New(config(origin("west", "n1"), at), Saved{}, at)
	n.SetRunning(true, at)
	n.NoUDP("192.0.2.7", at)
	n.Take()
	n.Beat(nil, nil, at.Add(ProblemLife))
	if len(n.Problems(at.Add(ProblemLife))) != 1 {
		t.Error("it goes too early")
	}
	n.Take()
	later := at.Add(ProblemLife + time.Second)
	if n.Beat(nil, nil, later); !n.Take().Changed || len(n.Problems(later)) != 0 {
		t.Errorf("it stays, or that it goes is no change: %v", n.Problems(later))
	}
}
