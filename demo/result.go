package demo

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"strait.io/strait/demo/traffic"
)

// Result is what --json writes. Fields are added, never removed or changed.
type Result struct {
	// OK reports whether every expectation held and the demo ran to its end.
	OK bool `json:"ok"`
	// Requests counts all calls. Failures counts those that failed outside the windows of steps 2
	// and 4.
	Requests     int        `json:"requests"`
	Failures     int        `json:"failures"`
	ClusterSetIP netip.Addr `json:"clusterSetIP"`
	// Kernel is the kernel's release.
	Kernel string `json:"kernel"`
	// WireGuard is "kernel" or "userspace".
	WireGuard string  `json:"wireguard"`
	Clusters  int     `json:"clusters"`
	Nodes     int     `json:"nodes"`
	Seconds   float64 `json:"seconds"`
	// Steps are in the order in which they began.
	Steps []*Step `json:"steps"`

	try []string // commands for a demo that is left up
}

// Step is the result of one step of the demo.
type Step struct {
	Number   int    `json:"number"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Requests int    `json:"requests"`
	// Failures counts failed calls outside the step's window. FailedInWindow counts those inside;
	// nil if the step has no window.
	Failures       int  `json:"failures"`
	FailedInWindow *int `json:"failed_in_window,omitempty"`
	// Hits counts the answered calls by the cluster that answered.
	Hits map[string]int `json:"hits"`
	// P50 is the median time of an answered call, in microseconds.
	P50 int64 `json:"p50_us"`
	// FailoverMS is t1 - t0 in milliseconds. t0 is when the YAML was written or the node was
	// killed. t1 is when the entries were gone from every node's map and every caller had its first
	// right answer, whichever came later.
	FailoverMS *float64 `json:"failover_ms,omitempty"`
	Seconds    float64  `json:"seconds"`
	Rows       []Row    `json:"rows"`
	Checks     []Check  `json:"checks"`

	runs   []*traffic.Run
	window window
	begun  time.Time
	ended  bool // and not interrupted
}

// Row summarises the calls of one kind of caller to one target.
type Row struct {
	From           string         `json:"from"`
	Target         string         `json:"target"`
	Calls          int            `json:"calls"`
	Failures       int            `json:"failures"`
	FailedInWindow int            `json:"failed_in_window"`
	Hits           map[string]int `json:"hits"`
	P50            int64          `json:"p50_us"`
	// FirstError is the time and error of the first failed call outside the window.
	FirstError string `json:"first_error,omitempty"`
}

// Check is one expectation and its outcome.
type Check struct {
	// Name is a statement that is true if the expectation held.
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Got  string `json:"got"`
	Want string `json:"want"`
}

// window is the time in which calls are allowed to fail. The zero value means no window.
type window struct{ from, to time.Time }

// touches reports whether any part of the call was inside the window.
func (w window) touches(c traffic.Call) bool {
	return !w.from.IsZero() && c.End().After(w.from) && c.At.Before(w.to)
}

// tally counts a run's calls.
func tally(from, target string, calls []traffic.Call, w window) Row {
	r := Row{From: from, Target: target, Calls: len(calls), Hits: map[string]int{}}
	var took []int64
	for _, c := range calls {
		switch {
		case c.OK():
			r.Hits[c.Cluster]++
			took = append(took, c.Micros)
		case w.touches(c):
			r.FailedInWindow++
		default:
			r.Failures++
			if r.FirstError == "" {
				r.FirstError = fmt.Sprintf("%s: %s", c.At.Format("15:04:05.000"), c.Err)
			}
		}
	}
	r.P50 = median(took)
	return r
}

func median(v []int64) int64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[(len(v)-1)/2]
}

// count fills in the fields that follow from the step's calls: the totals, and a row for each kind
// of caller and target.
func (s *Step) count() {
	s.Rows, s.Hits, s.Requests, s.Failures = nil, map[string]int{}, 0, 0
	type kind struct{ from, target string }
	var order []kind
	calls := map[kind][]traffic.Call{}
	var all []traffic.Call
	for _, run := range s.runs {
		k := kind{caller(run.From()), run.Target}
		if _, known := calls[k]; !known {
			order = append(order, k)
		}
		calls[k] = append(calls[k], run.Calls()...)
		all = append(all, run.Calls()...)
	}
	for _, k := range order {
		s.Rows = append(s.Rows, tally(k.from, k.target, calls[k], s.window))
	}
	sum := tally("", "", all, s.window)
	s.Requests, s.Failures, s.Hits, s.P50 = sum.Calls, sum.Failures, sum.Hits, sum.P50
	if !s.window.from.IsZero() {
		s.FailedInWindow = &sum.FailedInWindow
	}
}

// caller names the group that a client's place belongs to: "us-east-1/client" is in "us-east pods".
func caller(place string) string {
	node, _, inPod := strings.Cut(place, "/")
	cluster := node
	if i := strings.LastIndex(node, "-"); i >= 0 {
		cluster = node[:i]
	}
	if inPod {
		return cluster + " pods"
	}
	return cluster + " nodes"
}

// expect records an expectation and its outcome.
func (s *Step) expect(ok bool, name, got, want string) {
	s.Checks = append(s.Checks, Check{name, ok, got, want})
}

// expectNone records a statement that holds if the list of its exceptions is empty.
func (s *Step) expectNone(name string, faults []string) {
	got := "none"
	if len(faults) > 0 {
		got = faults[0]
	}
	if len(faults) > 1 {
		got = fmt.Sprintf("%s; and %d more", got, len(faults)-1)
	}
	s.expect(len(faults) == 0, name, got, "none")
}

// expectSome records a statement that holds if something was counted.
func (s *Step) expectSome(name string, count int) {
	s.expect(count > 0, name, fmt.Sprint(count), "more than 0")
}

// expectSoon records the expectation that something happened within a limit. An error means that it
// did not happen.
func (s *Step) expectSoon(name string, took, limit time.Duration, err error) {
	got := took.Round(time.Millisecond).String()
	if err != nil {
		got = err.Error()
	}
	s.expect(err == nil && took <= limit, name, got, "at most "+limit.String())
}

// expectNoError records a statement that holds if err is nil.
func (s *Step) expectNoError(name string, err error) {
	got := "no error"
	if err != nil {
		got = err.Error()
	}
	s.expect(err == nil, name, got, "no error")
}

// expectNoFailures records the expectation that no call failed outside the step's window. The calls
// have been counted.
func (s *Step) expectNoFailures() {
	name, got := "no call failed", "none"
	if s.FailedInWindow != nil {
		name += " outside the failover"
		if *s.FailedInWindow > 0 {
			got = fmt.Sprintf("%d during it", *s.FailedInWindow)
		}
	}
	if s.Failures > 0 {
		got = fmt.Sprintf("%d failed", s.Failures)
		for _, r := range s.Rows {
			if r.FirstError != "" {
				got += fmt.Sprintf(", one from %s to %s at %s", r.From, r.Target, r.FirstError)
				break
			}
		}
	}
	s.expect(s.Failures == 0, name, got, "none")
}

func (s *Step) failed() (n int) {
	for _, c := range s.Checks {
		if !c.OK {
			n++
		}
	}
	return n
}

// total fills in the fields that follow from the steps.
func (r *Result) total() {
	r.Requests, r.Failures, r.OK = 0, 0, len(r.Steps) > 0
	for _, s := range r.Steps {
		r.Requests += s.Requests
		r.Failures += s.Failures
		r.OK = r.OK && s.failed() == 0
	}
	r.OK = r.OK && r.Failures == 0
}

func (r *Result) expectations() (met, all int) {
	for _, s := range r.Steps {
		all += len(s.Checks)
		met += len(s.Checks) - s.failed()
	}
	return met, all
}

func millis(d time.Duration) float64 { return math.Round(float64(d.Microseconds())/100) / 10 }

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }
