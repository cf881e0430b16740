package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxRepeats is how many failed tests of one run are run again. More are no accident.
const maxRepeats = 3

// repeats are the tests that are run again.
type repeats struct {
	// why says why nothing is run again: some failures do not become false because they do not
	// happen the next time.
	why   string
	flaky []test // failed, and passed when they ran again
}

// certain notes a failure that counts however often its test passes.
func (r *repeats) certain(why string) { r.why = cmp.Or(r.why, why) }

// certainties are what such failures print.
var certainties = []struct {
	why    string
	prints *regexp.Regexp
}{
	{"a data race", regexp.MustCompile(`WARNING: DATA RACE|race detected during execution of test|Found \d+ data race`)},
	{"a test that did not end", regexp.MustCompile(`panic: test timed out after`)},
	{"a panic", regexp.MustCompile(`(?m)^\s*(panic: |fatal error: |unexpected fault address )`)},
	// rapid, go's fuzzing, and what this project's own generators print.
	{"a counterexample", regexp.MustCompile(`\[rapid\] |Failing input written to|(?i:to repeat it: )`)},
}

// certainty returns which of them an output shows, or "".
func certainty(output string) string {
	for _, c := range certainties {
		if c.prints.MatchString(output) {
			return c.why
		}
	}
	return ""
}

// whole returns the test that a subtest belongs to and that can run alone. That is the top-level
// test, because subtests may need what those before them did; or, with parts, its direct subtest.
func (r *report) whole(t test) test {
	names := strings.Split(t.name, "/")
	n := 1
	if r.parts {
		n = min(2, len(names))
	}
	t.name = strings.Join(names[:n], "/")
	return t
}

// alone returns the arguments of `go test` that run a whole test, and nothing beside it.
func (t test) alone() []string {
	var run []string
	for name := range strings.SplitSeq(t.name, "/") {
		run = append(run, "^"+regexp.QuoteMeta(name)+"$")
	}
	return []string{"-p=1", "-parallel=1", "-run=" + strings.Join(run, "/"), t.pkg}
}

// contains reports whether another test is a subtest of t.
func (t test) contains(other test) bool {
	return other.pkg == t.pkg && strings.HasPrefix(other.name, t.name+"/")
}

// candidates returns the tests to run again, in the order in which they failed. A test that failed
// because one of its parts did is not among them.
func (r *report) candidates() (out []test) {
	for _, t := range r.failures {
		if w := r.whole(t); !slices.Contains(out, w) && !slices.ContainsFunc(r.failures, func(f test) bool { return w.contains(r.whole(f)) }) {
			out = append(out, w)
		}
	}
	switch {
	case len(out) == 0:
	case r.broken:
		r.certain("a package that failed outside its tests")
	case len(out) > maxRepeats:
		r.certain(fmt.Sprintf("more than %d failed tests", maxRepeats))
	}
	if r.why != "" {
		return nil
	}
	return out
}

// repeat runs failed tests again, unless their failures are certain.
func (r *report) repeat(run func(*report, test) error) error {
	tests := r.candidates()
	if r.why != "" && r.failed > 0 {
		fmt.Fprintf(r.out, "no failed test runs again, because of %s\n", r.why)
	}
	for _, t := range tests {
		fmt.Fprintf(r.out, "%s failed; it runs again, alone\n", t)
		again := newReport(r.out)
		if err := run(again, t); err != nil {
			return err
		}
		// A skip is no success: it would hide the failure.
		if again.passed > 0 && again.failed == 0 && !again.broken && !again.skipped(t) {
			r.passesNow(t, again)
		}
	}
	return nil
}

func (r *report) skipped(t test) bool {
	return slices.ContainsFunc(r.skips, func(s skip) bool { return s.name == t.String() })
}

// passesNow counts a test as passed, with its subtests, and with the test that it is the last
// failed part of. What skipped only now is a skip too.
func (r *report) passesNow(t test, again *report) {
	r.flaky = append(r.flaky, t)
	n := len(r.failures)
	r.failures = slices.DeleteFunc(r.failures, func(f test) bool { return r.whole(f) == t })
	r.failures = slices.DeleteFunc(r.failures, func(f test) bool { return f.contains(t) && !slices.ContainsFunc(r.failures, f.contains) })
	n -= len(r.failures)
	r.failed, r.passed = r.failed-n, r.passed+n
	for _, s := range again.skips {
		if !slices.ContainsFunc(r.skips, func(had skip) bool { return had.name == s.name }) {
			r.skips = append(r.skips, s)
		}
	}
}
