package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stream writes what `go test -json` does of a package.
type stream struct{ strings.Builder }

func (s *stream) event(action, test, output string) *stream {
	fmt.Fprintf(s, `{"Action":%q,"Package":"strait.io/strait/datapath","Test":%q,"Output":%q}`+"\n", action, test, output)
	return s
}

// ends runs a test that prints some lines and ends.
func (s *stream) ends(action, test string, lines ...string) *stream {
	s.event("run", test, "").event("output", test, "=== RUN   "+test+"\n")
	for _, l := range lines {
		s.event("output", test, l+"\n")
	}
	return s.event(action, test, "")
}

// over ends the package.
func (s *stream) over(action string) string {
	fmt.Fprintf(s, `{"Action":%q,"Package":"strait.io/strait/datapath"}`+"\n", action)
	return s.String()
}

func begin() *stream { return &stream{} }

// TestRepeat: few failures that can be accidents run again, and no others. What passes then is flaky and passed.
func TestRepeat(t *testing.T) {
	const late = "    a_test.go:9: not within 10s"
	for _, tc := range []struct {
		name, in string
		parts    bool
		again    map[string]string // by test: what comes of it when it runs again
		ok       bool
		want     []string
		not      string
	}{
		{name: "it passes", in: begin().ends("pass", "TestA").ends("fail", "TestB/sub", late).ends("fail", "TestB").over("fail"), ok: true,
			again: map[string]string{"TestB": begin().ends("pass", "TestB/sub").ends("pass", "TestB").over("pass")},
			want:  []string{"--- FAIL datapath/TestB/sub\n", "not within 10s", "\nFLAKY datapath/TestB\n3 passed, 0 failed, 0 skipped\n"}},
		{name: "it fails again", in: begin().ends("fail", "TestA", late).over("fail"),
			again: map[string]string{"TestA": begin().ends("fail", "TestA", "    a_test.go:9: the second time").over("fail")},
			want:  []string{"not within 10s", "the second time", "\n0 passed, 1 failed, 0 skipped\n"}, not: "FLAKY"},
		{name: "one of two fails again", in: begin().ends("fail", "TestA", late).ends("fail", "TestB", late).over("fail"),
			again: map[string]string{"TestA": begin().ends("fail", "TestA").over("fail"), "TestB": begin().ends("pass", "TestB").over("pass")},
			want:  []string{"\nFLAKY datapath/TestB\n1 passed, 1 failed, 0 skipped\n"}},
		{name: "it skips", in: begin().ends("fail", "TestA", late).over("fail"), not: "FLAKY",
			again: map[string]string{"TestA": begin().ends("skip", "TestA", "    a_test.go:9: no more").over("pass")}},
		{name: "it is not there", in: begin().ends("fail", "TestA", late).over("fail"), not: "FLAKY", again: map[string]string{"TestA": begin().over("pass")}},
		{name: "it passes, and its package fails", in: begin().ends("fail", "TestA", late).over("fail"), not: "FLAKY",
			again: map[string]string{"TestA": begin().ends("pass", "TestA").event("output", "", "exit status 3\n").over("fail")}},
		{name: "a subtest skips only now", in: begin().ends("fail", "TestA/sub", late).ends("fail", "TestA").over("fail"), ok: true,
			again: map[string]string{"TestA": begin().ends("skip", "TestA/sub", "    a_test.go:9: not here").ends("pass", "TestA").over("pass")},
			want:  []string{"SKIP datapath/TestA/sub: not here\n", "FLAKY datapath/TestA\n"}},
		{name: "a part", parts: true, in: begin().ends("pass", "TestA/one").ends("fail", "TestA/two/sub", late).ends("fail", "TestA/two").ends("fail", "TestA").over("fail"), ok: true,
			again: map[string]string{"TestA/two": begin().ends("pass", "TestA/two/sub").ends("pass", "TestA/two").ends("pass", "TestA").over("pass")},
			want:  []string{"\nFLAKY datapath/TestA/two\n4 passed, 0 failed, 0 skipped\n"}},
		{name: "one of two parts fails again", parts: true, in: begin().ends("fail", "TestA/one", late).ends("fail", "TestA/two", late).ends("fail", "TestA").over("fail"),
			again: map[string]string{
				"TestA/one": begin().ends("pass", "TestA/one").ends("pass", "TestA").over("pass"),
				"TestA/two": begin().ends("fail", "TestA/two").ends("fail", "TestA").over("fail"),
			},
			want: []string{"\nFLAKY datapath/TestA/one\n1 passed, 2 failed, 0 skipped\n"}},
		{name: "two parts pass", parts: true, in: begin().ends("fail", "TestA/one", late).ends("fail", "TestA/two", late).ends("fail", "TestA").over("fail"), ok: true,
			again: map[string]string{
				"TestA/one": begin().ends("pass", "TestA/one").ends("pass", "TestA").over("pass"),
				"TestA/two": begin().ends("pass", "TestA/two").ends("pass", "TestA").over("pass"),
			},
			want: []string{"\n3 passed, 0 failed, 0 skipped\n"}},
		{name: "a test with parts fails before them", parts: true, in: begin().ends("fail", "TestA", late).over("fail"), ok: true,
			again: map[string]string{"TestA": begin().ends("pass", "TestA/one").ends("pass", "TestA").over("pass")},
			want:  []string{"\nFLAKY datapath/TestA\n1 passed, 0 failed, 0 skipped\n"}},
		{name: "four", in: begin().ends("fail", "TestA").ends("fail", "TestB").ends("fail", "TestC").ends("fail", "TestD").over("fail"), want: []string{"because of more than 3 failed tests\n"}},
		{name: "a data race", in: begin().ends("fail", "TestA", "WARNING: DATA RACE").over("fail"), want: []string{"because of a data race\n"}},
		{name: "a data race outside tests", in: begin().ends("fail", "TestA").event("output", "", "Found 1 data race(s)\n").over("fail"), want: []string{"because of a data race\n"}},
		{name: "a data race beside another failure", in: begin().ends("fail", "TestA", late).ends("fail", "TestB", "WARNING: DATA RACE").over("fail"), want: []string{"because of a data race\n"}},
		{name: "a panic", in: begin().ends("fail", "TestA", "panic: oh [recovered, repanicked]").over("fail"), want: []string{"because of a panic\n"}},
		{name: "a panic of an inner process", in: begin().ends("fail", "TestA", "    a_test.go:9: inside:", "        panic: oh").over("fail"), want: []string{"because of a panic\n"}},
		{name: "rapid", in: begin().ends("fail", "TestA", "    a_test.go:15: [rapid] failed after 2 tests: n").over("fail"), want: []string{"because of a counterexample\n"}},
		{name: "a seed", in: begin().ends("fail", "TestA", "to repeat it: SEED=7 go test").over("fail"), want: []string{"because of a counterexample\n"}},
		{name: "a fuzz target's seed", in: begin().ends("fail", "FuzzA/seed#0").ends("fail", "FuzzA").over("fail"), want: []string{"because of a counterexample\n"}},
		{name: "a package fails without a test", in: begin().ends("pass", "TestA").over("fail")},
		{name: "a limit", in: begin().ends("pass", "TestA").event("run", "TestB", "").event("output", "TestB", "=== RUN   TestB\n").event("run", "TestB/sub", "").
			event("output", "TestB/sub", "    a_test.go:9: step one\n").event("output", "TestB/sub", "panic: test timed out after 2s\n").over("fail"),
			want: []string{"--- DID NOT END datapath/TestB\n=== RUN   TestB\n", "--- DID NOT END datapath/TestB/sub\n    a_test.go:9: step one\npanic: test timed out",
				"because of a test that did not end\n", "1 passed, 2 failed, 0 skipped\n"}},
		{name: "go is killed", in: begin().event("run", "TestB", "").event("output", "TestB", "step one\n").String(), want: []string{"--- DID NOT END datapath/TestB\nstep one\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			r := newReport(&out)
			r.parts = tc.parts
			read := func(r *report, in string) error {
				err := r.read(strings.NewReader(in))
				r.end(nil)
				return err
			}
			if err := read(r, tc.in); err != nil {
				t.Fatal(err)
			}
			var ran []string
			err := r.repeat(func(again *report, x test) error {
				ran = append(ran, x.name)
				return read(again, tc.again[x.name])
			})
			if err != nil || len(ran) != len(tc.again) {
				t.Errorf("%v ran again, %v", ran, err)
			}
			if ok := r.finish(nil, false); ok != tc.ok {
				t.Errorf("ok %v, want %v", ok, tc.ok)
			}
			for _, w := range tc.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("no %q in:\n%s", w, &out)
				}
			}
			if tc.not != "" && strings.Contains(out.String(), tc.not) {
				t.Errorf("%q in:\n%s", tc.not, &out)
			}
		})
	}
}

// TestEndWithoutEvents: a go command that fails and says of no test that it failed is no success.
func TestEndWithoutEvents(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out)
	if err := r.read(strings.NewReader(passes)); err != nil {
		t.Fatal(err)
	}
	r.end(errors.New("exit status 2"))
	if r.finish(nil, false) || !strings.Contains(out.String(), "FAIL go test: exit status 2\n") {
		t.Errorf("success:\n%s", &out)
	}
}

// TestRunsAgain: this program runs go, and go again, for tests of testdata/again.
func TestRunsAgain(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report")
	if out, err := exec.Command("go", "build", "-o", report, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tc := range []struct {
		name, run string
		ok        bool
		want      []string
		not       string
	}{
		{"parts", "Parts", true, []string{": the first time", "\nFLAKY test/report/testdata/again/TestParts/second\n3 passed, 0 failed, 0 skipped\n"}, "TestParts/first"},
		{"once", "Once|Passes", true, []string{": the first time", "\nFLAKY test/report/testdata/again/TestOnce\n3 passed, 0 failed, 0 skipped\n"}, ""},
		{"always", "Once|Always", false, []string{"FLAKY test/report/testdata/again/TestOnce\n", "every time", "\n2 passed, 1 failed, 0 skipped\n"}, "FLAKY test/report/testdata/again/TestAlways"},
		{"hangs", "Once|Hangs", false, []string{"--- DID NOT END test/report/testdata/again/TestHangs/sub\n", "before it hangs", "panic: test timed out after 3s", "\n0 passed, 4 failed, 0 skipped\n"}, "FLAKY"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := []string{"go", "test", "-json", "-count=1", "-timeout=3s", "-parallel=8", "-run=" + tc.run, "--", "./test/report/testdata/again"}
			if tc.name == "parts" {
				args = append([]string{"-parts"}, args...)
			}
			cmd := exec.Command(report, args...)
			cmd.Dir = "../.."
			cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TEST_TIMES=") }), "AGAIN_DIR="+t.TempDir(), "CI=")
			out, err := cmd.CombinedOutput()
			if ok := err == nil; ok != tc.ok {
				t.Errorf("ok %v, %v", ok, err)
			}
			for _, w := range tc.want {
				if !strings.Contains(string(out), w) {
					t.Errorf("no %q in:\n%s", w, out)
				}
			}
			if tc.not != "" && strings.Contains(string(out), tc.not) {
				t.Errorf("%q in:\n%s", tc.not, out)
			}
		})
	}
}
