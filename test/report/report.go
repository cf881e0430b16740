package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

const module = "strait.io/strait/"

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds; set when a test ends
}

// test is a test of a package; the name of a subtest has slashes.
type test struct{ pkg, name string }

// String returns the test's name as in reports and test/skips.txt:
// "clustermesh/TestMerge/oldest_wins".
func (t test) String() string { return strings.TrimPrefix(t.pkg, module) + "/" + t.name }

// skip is a test that did not run.
type skip struct{ name, reason string }

type report struct {
	out            io.Writer
	running        map[test]bool
	output         map[test][]string // of tests that are still running
	clock          clock
	skips          []skip
	failures       []test
	passed, failed int
	packages       int
	broken         bool // a package did not build, or failed outside any test
	parts          bool // direct subtests need nothing of each other and can run alone
	repeats
}

func newReport(out io.Writer) *report {
	return &report{out: out, running: map[test]bool{}, output: map[test][]string{}, clock: newClock()}
}

// read consumes events until in ends. A line that is not an event comes from the go command itself
// and is printed.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20) // a test can print a long line
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Action == "" {
			fmt.Fprintln(r.out, lines.Text())
			continue
		}
		r.event(e)
	}
	return lines.Err()
}

func (r *report) event(e event) {
	t := test{e.Package, e.Test}
	switch {
	case e.Action == "output" && e.Test != "":
		r.output[t] = append(r.output[t], e.Output)
	case e.Action == "output":
		r.certain(certainty(e.Output))
		if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			fmt.Fprint(r.out, e.Output)
		}
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Test == "":
		r.endPackage(e.Action, e.Package)
	case e.Action == "run":
		r.running[t] = true
	case e.Action == "pause":
		r.clock.pause(t.String())
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		r.clock.end(t.String(), e.Test, e.Elapsed)
		r.endTest(e.Action, t)
	}
}

func (r *report) endPackage(action, pkg string) {
	switch action {
	case "pass":
		r.packages++
	case "fail":
		r.packages++
		r.unended(func(t test) bool { return t.pkg == pkg })
		if !slices.ContainsFunc(r.failures, func(t test) bool { return t.pkg == pkg }) {
			r.broken = true
		}
	}
}

func (r *report) endTest(action string, t test) {
	lines := r.output[t]
	delete(r.output, t)
	delete(r.running, t)
	switch action {
	case "pass":
		r.passed++
	case "skip":
		r.skips = append(r.skips, skip{t.String(), reason(lines)})
	case "fail":
		r.fail("FAIL", t, lines)
	}
}

// fail counts a failed test and prints its output.
func (r *report) fail(how string, t test, lines []string) {
	r.failed++
	r.failures = append(r.failures, t)
	text := strings.Join(lines, "")
	r.certain(certainty(text))
	if strings.HasPrefix(t.name, "Fuzz") {
		r.certain("a counterexample")
	}
	fmt.Fprintf(r.out, "--- %s %s\n%s", how, t, text)
}

// unended fails the tests that ran when their process ended. There are some after a time limit, whose
// message and stacks are in the output of one of them.
func (r *report) unended(which func(test) bool) {
	var left []test
	for t := range r.running {
		if which(t) {
			left = append(left, t)
		}
	}
	slices.SortFunc(left, func(a, b test) int { return strings.Compare(a.String(), b.String()) })
	for _, t := range left {
		r.fail("DID NOT END", t, r.output[t])
		r.certain("a test that did not end")
		delete(r.running, t)
		delete(r.output, t)
	}
}

// end is called when all events are read, with how the go command ended.
func (r *report) end(ended error) {
	r.unended(func(test) bool { return true })
	if ended != nil && r.failed == 0 && !r.broken {
		fmt.Fprintln(r.out, "FAIL go test:", ended)
		r.broken = true
	}
}

var place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason returns the last message that a test logged before it skipped.
func reason(lines []string) string {
	for _, l := range slices.Backward(lines) {
		if at := place.FindString(l); at != "" {
			return strings.TrimSpace(l[len(at):])
		}
	}
	return "no reason given"
}

// finish prints skips, flaky tests and totals, and reports whether the run succeeded.
func (r *report) finish(allowed map[string]bool, ci bool) bool {
	ok := r.failed == 0 && !r.broken
	for _, s := range r.skips {
		fmt.Fprintf(r.out, "SKIP %s: %s\n", s.name, s.reason)
		if ci && !allowed[s.name] {
			fmt.Fprintf(r.out, "FAIL %s: in CI a test is skipped only if %s allows it\n", s.name, allowFile)
			ok = false
		}
	}
	for _, t := range r.flaky {
		fmt.Fprintf(r.out, "FLAKY %s\n", t)
	}
	if r.packages == 0 {
		fmt.Fprintln(r.out, "FAIL no package was tested")
		ok = false
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skips))
	return ok
}

// readAllowed returns the first word of each line in a file. The rest of the line is the reason,
// which is required. Empty lines and lines that begin with # are ignored.
func readAllowed(file string) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	allowed := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		what, why, _ := strings.Cut(line, " ")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s:%d: %s is allowed to skip without a reason: write one after it", file, i+1, what)
		}
		allowed[what] = true
	}
	return allowed, nil
}
