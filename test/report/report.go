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

// name returns the test's name as in reports and test/skips.txt:
// "clustermesh/TestMerge/oldest_wins".
func (e event) name() string {
	return strings.TrimPrefix(e.Package, module) + "/" + e.Test
}

// skip is a test that did not run.
type skip struct{ name, reason string }

type report struct {
	out            io.Writer
	output         map[string][]string // of tests that are still running
	clock          clock
	skips          []skip
	passed, failed int
	packages       int
	broken         bool // a package failed: it did not build, or failed outside any test
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[string][]string{}, clock: newClock()}
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
	name := e.name()
	switch {
	case e.Action == "output" && e.Test != "":
		r.output[name] = append(r.output[name], e.Output)
	case e.Action == "output":
		if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			fmt.Fprint(r.out, e.Output)
		}
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Test == "":
		r.endPackage(e.Action)
	case e.Action == "pause":
		r.clock.pause(name)
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		r.clock.end(name, e.Test, e.Elapsed)
		r.endTest(e.Action, name)
	}
}

func (r *report) endPackage(action string) {
	switch action {
	case "pass":
		r.packages++
	case "fail":
		r.packages++
		r.broken = true
	}
}

func (r *report) endTest(action, name string) {
	lines := r.output[name]
	delete(r.output, name)
	switch action {
	case "pass":
		r.passed++
	case "skip":
		r.skips = append(r.skips, skip{name, reason(lines)})
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "--- FAIL %s\n%s", name, strings.Join(lines, ""))
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

// finish prints skips and totals, and reports whether the run succeeded.
func (r *report) finish(allowed map[string]bool, ci bool) bool {
	ok := r.failed == 0 && !r.broken
	for _, s := range r.skips {
		fmt.Fprintf(r.out, "SKIP %s: %s\n", s.name, s.reason)
		if ci && !allowed[s.name] {
			fmt.Fprintf(r.out, "FAIL %s: in CI a test is skipped only if %s allows it\n", s.name, allowFile)
			ok = false
		}
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
