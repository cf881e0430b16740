package demo

import (
	"bytes"
	"strings"
	"testing"
)

func sample() *Step {
	ms, in := 58.9, 3
	return &Step{
		Number: 2, Title: "pods go away", Seconds: 1.1, FailoverMS: &ms, FailedInWindow: &in,
		Rows: []Row{{From: "a pods", Target: "http://241.0.0.1", Calls: 10, Hits: map[string]int{"b": 7}, FailedInWindow: 3, P50: 1500}},
		Checks: []Check{
			{Name: "calls that failed", OK: true, Got: "0", Want: "0"},
			{Name: "gone", OK: false, Got: "not within 2s", Want: "at most 2s"},
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
  FROM    TO                CALLS  a  b  FAILED            P50
  a pods  http://241.0.0.1  10     –  7  0 (+3 in window)  1500 µs
  failover 58.9 ms; 3 calls failed in that window
✓ calls that failed: 0
✗ gone: not within 2s; expected at most 2s
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
