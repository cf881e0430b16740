package demo

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
)

func sample() *Step {
	ms, in := 58.9, 3
	return &Step{
		Number: 2, Title: "pods go away", Seconds: 1.1, FailoverMS: &ms, FailedInWindow: &in,
		Rows: []Row{{From: "a pods", Target: "http://241.0.0.1", Calls: 10, Hits: map[string]int{"b": 7}, FailedInWindow: 3, P50: 1500}},
		Checks: []Check{
			{Name: "the maps are as before", OK: true, Got: "none", Want: "none"},
			{Name: "right answers came", OK: true, Got: "59ms", Want: "at most 2s"},
			{Name: "gone", OK: false, Got: "not in time", Want: "at most 2s"},
		},
	}
}

func TestPrintStep(t *testing.T) {
	var b bytes.Buffer
	p := &printer{w: &b}
	p.progress("doing")
	p.step(sample(), []string{"a", "b"})
	want := `… doing

STEP 2  pods go away  (1.1s)
  FROM    TO                CALLS  a  b  FAILED              P50
  a pods  http://241.0.0.1  10     –  7  0 (+3 in failover)  1500 µs
✓ the maps are as before
✓ right answers came (59ms)
✗ gone: not in time; expected at most 2s
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

// whole is the result of a run in which every step held.
func whole() *Result {
	r := &Result{
		ClusterSetIP: netip.MustParseAddr("241.5.251.216"), Kernel: "6.1.0", WireGuard: "kernel",
		Clusters: 3, Nodes: 2, Seconds: 96.4,
	}
	for n := 1; n <= lastStep; n++ {
		s := &Step{Number: n, Requests: 100 * n, ended: true, Checks: []Check{{OK: true}, {OK: true}}}
		if ms, in := map[int]float64{2: 112.4, 4: 3_440}[n], n; ms > 0 {
			s.FailoverMS, s.FailedInWindow = &ms, &in
		}
		r.Steps = append(r.Steps, s)
	}
	r.total()
	return r
}

func TestPrintTotal(t *testing.T) {
	var b bytes.Buffer
	p := &printer{w: &b}
	r := whole()
	p.total(r)
	r.Steps = r.Steps[:2]
	r.Steps[1].Failures, r.Steps[1].Checks[0].OK = 3, false
	r.total()
	p.total(r)
	want := `
One name and one address (241.5.251.216) answered in 3 clusters, each caller from its own cluster.
When a cluster's pods left, another cluster answered after 112 ms (target 300 ms). When a machine died, others answered after 3.4 s (target 6 s).
None of 2600 calls failed while a cluster was cut off and when 4 daemons were killed.
✓ 18 of 18 expectations held · 4500 calls, 0 failed (+6 in failover) · 3 clusters × 2 nodes · WireGuard kernel · Linux 6.1.0 · 96s

One name and one address (241.5.251.216) answered in 3 clusters, each caller from its own cluster.
✗ 3 of 4 expectations held · failed: step 2 · not run: steps 3, 4, 5, 6, 7, 8, 9 · 300 calls, 3 failed (+2 in failover) · 3 clusters × 2 nodes · WireGuard kernel · Linux 6.1.0 · 96s
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestPrintLooks(t *testing.T) {
	for _, c := range []struct {
		name       string
		p          *printer
		has, hasNo string
	}{
		{"plain", &printer{}, "✗ gone", "\x1b"},
		{"ascii", &printer{ascii: true}, "FAIL gone", "✗"},
		{"colour", &printer{live: true, color: true}, "\x1b[31m✗\x1b[0m gone", "\x1b[31mFAIL"},
		{"a terminal without colour", &printer{live: true}, "✗ gone", "\x1b[31m"},
	} {
		var b bytes.Buffer
		c.p.w = &b
		c.p.progress("doing")
		c.p.step(sample(), []string{"a", "b"})
		c.p.quiet()
		if !strings.Contains(b.String(), c.has) || strings.Contains(b.String(), c.hasNo) {
			t.Errorf("%s: want %q and not %q in %q", c.name, c.has, c.hasNo, b.String())
		}
	}
}
