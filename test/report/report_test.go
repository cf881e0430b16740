package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	passes = `{"Action":"start","Package":"strait.io/strait/datapath"}
{"Action":"run","Package":"strait.io/strait/datapath","Test":"TestDiff"}
{"Action":"output","Package":"strait.io/strait/datapath","Test":"TestDiff","Output":"=== RUN   TestDiff\n"}
{"Action":"output","Package":"strait.io/strait/datapath","Test":"TestDiff","Output":"    diff_test.go:9: chatter\n"}
{"Action":"pass","Package":"strait.io/strait/datapath","Test":"TestDiff"}
{"Action":"output","Package":"strait.io/strait/datapath","Output":"PASS\n"}
{"Action":"output","Package":"strait.io/strait/datapath","Output":"ok  \tstrait.io/strait/datapath\t0.01s\n"}
{"Action":"pass","Package":"strait.io/strait/datapath"}
`
	fails = `{"Action":"output","Package":"strait.io/strait/datapath","Test":"TestDiff","Output":"    diff_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"strait.io/strait/datapath","Test":"TestDiff"}
{"Action":"fail","Package":"strait.io/strait/datapath"}
`
	skips = `{"Action":"output","Package":"strait.io/strait/datapath/socklb","Test":"TestLoad","Output":"    load_test.go:9: needs root\n"}
{"Action":"output","Package":"strait.io/strait/datapath/socklb","Test":"TestLoad","Output":"--- SKIP: TestLoad (0.00s)\n"}
{"Action":"skip","Package":"strait.io/strait/datapath/socklb","Test":"TestLoad"}
{"Action":"pass","Package":"strait.io/strait/datapath/socklb"}
`
	breaks = `{"ImportPath":"strait.io/strait/datapath","Action":"build-output","Output":"diff.go:3: undefined: x\n"}
{"ImportPath":"strait.io/strait/datapath","Action":"build-fail"}
{"Action":"fail","Package":"strait.io/strait/datapath","FailedBuild":"strait.io/strait/datapath"}
`
	empty = `{"Action":"skip","Package":"strait.io/strait/datapath"}
`
)

func TestReport(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		ci       bool
		allowed  string
		ok       bool
		want     []string
		not      string
	}{
		{name: "a passing test is quiet", in: passes, ok: true, not: "chatter",
			want: []string{"ok  \tstrait.io/strait/datapath", "\n1 passed, 0 failed, 0 skipped\n"}},
		{name: "a failing test shows its output", in: fails,
			want: []string{"--- FAIL datapath/TestDiff", "got 1, want 2", "0 passed, 1 failed, 0 skipped\n"}},
		{name: "a skip shows its reason", in: passes + skips, ok: true,
			want: []string{"SKIP datapath/socklb/TestLoad: needs root\n", "1 passed, 0 failed, 1 skipped\n"}},
		{name: "a skip fails in CI", in: passes + skips, ci: true,
			want: []string{"FAIL datapath/socklb/TestLoad"}},
		{name: "a skip that is allowed does not", in: passes + skips, ci: true, ok: true,
			allowed: "datapath/socklb/TestLoad", want: []string{"SKIP datapath/socklb/TestLoad"}, not: "FAIL"},
		{name: "a package that does not build fails", in: breaks, want: []string{"undefined: x"}},
		{name: "nothing tested is no success", in: empty, want: []string{"no package was tested"}},
		{name: "no output at all is no success", in: "", want: []string{"no package was tested"}},
		{name: "what go itself says is shown", in: "go: no such module\n", want: []string{"go: no such module"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			r := newReport(&out)
			if err := r.read(strings.NewReader(tc.in)); err != nil {
				t.Fatal(err)
			}
			if ok := r.finish(map[string]bool{tc.allowed: true}, tc.ci); ok != tc.ok {
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

func TestReadAllowed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "skips.txt")
	for text, ok := range map[string]bool{
		"# comment\n\nrace the reason\n": true,
		"race\n":                         false,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readAllowed(file)
		if (err == nil) != ok || got["race"] != ok {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	if _, err := readAllowed("../skips.txt"); err != nil {
		t.Errorf("the repository's own list: %v", err)
	}
}
