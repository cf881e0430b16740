package result

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// events writes test2json's form of lines "ACTION TEST OUTPUT".
func events(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		f := strings.SplitN(l, " ", 3)
		e := map[string]string{"Action": f[0], "Test": f[1]}
		if len(f) == 3 {
			e["Output"] = f[2] + "\n"
		}
		text, _ := json.Marshal(e)
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}

func pack(t *testing.T, done bool, status int, lines ...string) Package {
	t.Helper()
	p, err := ReadPackage("datapath/socklb", events(lines...), done, status)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var good = []string{
	"run TestA", "output TestA     x_test.go:1: instructions: socklb connect4 verified 1792", "pass TestA",
	"run TestB", "output TestB     x_test.go:2: needs bpftool", "output TestB --- SKIP: TestB (0.0s)", "skip TestB",
	"run TestC", "output TestC     x_test.go:3: inside:",
	"output TestC         === RUN   TestC", "output TestC         === RUN   TestC/one",
	"output TestC             x_test.go:4: cannot refuse", "output TestC         === RUN   TestC/two",
	"output TestC         --- PASS: TestC (0.1s)", "output TestC             --- SKIP: TestC/one (0.0s)", "pass TestC",
	"pass ",
}

func TestReadPackage(t *testing.T) {
	p := pack(t, true, 0, good...)
	if p.Problem != "" || strings.Join(p.Passed, " ") != "TestA TestC" || p.Failed != nil {
		t.Errorf("%+v", p)
	}
	want := []Skip{{"TestB", "needs bpftool"}, {"TestC/one", "cannot refuse"}}
	if !reflect.DeepEqual(p.Skipped, want) {
		t.Errorf("skipped %+v, want %+v: what a test skips in a process of its own counts", p.Skipped, want)
	}
	if p.Instructions["socklb connect4"] != 1792 {
		t.Errorf("%v", p.Instructions)
	}
}

func TestReadPackageProblems(t *testing.T) {
	for _, tc := range []struct {
		name    string
		done    bool
		status  int
		lines   []string
		problem string
	}{
		{"hangs", false, 0, good[:4], "did not end in TestB"},
		{"times out", true, 2, append(good[:3:3], "run TestD", "output TestD panic: test timed out"), "exit status 2 in TestD"},
		{"dies", true, 2, good, "exit status 2"},
		{"runs nothing", true, 0, []string{"output  PASS", "pass "}, "no test ran"},
		{"fails", true, 1, []string{"run TestA", "output TestA why", "fail TestA", "fail "}, ""},
	} {
		if p := pack(t, tc.done, tc.status, tc.lines...); p.Problem != tc.problem {
			t.Errorf("%s: problem %q, want %q", tc.name, p.Problem, tc.problem)
		}
	}
	p := pack(t, true, 1, "run TestA", "output TestA why", "fail TestA", "fail ")
	if p.Output["TestA"] != "why\n" || len(p.Failed) != 1 {
		t.Errorf("%+v", p)
	}
	if p := pack(t, true, 2, "run TestD", "output TestD panic: test timed out"); p.Output["TestD"] == "" {
		t.Errorf("%+v: what it said last is not shown", p)
	}
	if _, err := ReadPackage("a", "no json\n", true, 0); err == nil {
		t.Error("text was taken for events")
	}
}

func TestWrite(t *testing.T) {
	ok := Machine{Kernel: "5.10.262", Packages: []Package{pack(t, true, 0, good...)}}
	all := "* datapath/socklb/TestB no bpftool\n5.10 datapath/socklb/TestC/one why\n"
	hung := ok
	hung.Problem = "hung"
	failed := ok
	failed.Packages = []Package{pack(t, true, 1, "run TestA", "output TestA why", "fail TestA", "fail ")}
	died := ok
	died.Packages = []Package{pack(t, true, 2, good...)}
	for _, tc := range []struct {
		name     string
		machines []Machine
		allowed  string
		ok       bool
		want     string
	}{
		{"all is well", []Machine{ok}, all, true, "\n2 passed, 0 failed, 2 skipped\n"},
		{"the counts stand under the kernel", []Machine{ok}, all, true, "socklb connect4      1792"},
		{"a skip is shown with its reason", []Machine{ok}, all, true, "SKIP 5.10.262 datapath/socklb/TestB: needs bpftool"},
		{"a pattern", []Machine{ok}, strings.Replace(all, "TestC/one", "*/one", 1), true, ""},
		{"a pattern of too few elements", []Machine{ok}, strings.Replace(all, "TestC/one", "*", 1), false, "TestC/one: in a VM"},
		{"a skip that is not allowed", []Machine{ok}, "", false, "FAIL 5.10.262 datapath/socklb/TestB"},
		{"one that is allowed on another kernel", []Machine{ok}, strings.Replace(all, "5.10 ", "5.1 ", 1), false, "FAIL 5.10.262 datapath/socklb/TestC/one"},
		{"a line that nobody needs", []Machine{ok}, all + "* datapath/socklb/TestA why\n", false, "TestA is not skipped: remove"},
		{"a line about what did not run", []Machine{ok}, all + "6.1 datapath/socklb/TestA why\n* datapath/route/TestA why\n", true, ""},
		{"a VM that hangs", []Machine{hung}, all, false, "\n2 passed, 1 failed, 2 skipped\n"},
		{"a test that fails", []Machine{failed}, "", false, "--- FAIL 5.10.262 datapath/socklb/TestA\nwhy\n"},
		{"a program that dies after its tests", []Machine{died}, all, false, "\n2 passed, 1 failed, 2 skipped\n"},
		{"nothing", nil, "", false, "0 passed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			allowed, err := ParseAllowed(tc.allowed)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if got := Write(&out, tc.machines, Rules{Allowed: allowed}); got != tc.ok {
				t.Errorf("ok %v, want %v", got, tc.ok)
			}
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("no %q in:\n%s", tc.want, &out)
			}
		})
	}
}

// TestPartial: who chose tests is not told of those that were not chosen.
func TestPartial(t *testing.T) {
	idle := pack(t, true, 0, "output  PASS", "pass ")
	m := Machine{Kernel: "5.10.262", Packages: []Package{idle, pack(t, true, 0, good[:3]...)}}
	allowed := []Allowed{{[]string{"*"}, "datapath/socklb/TestB", "why"}}
	var out bytes.Buffer
	if !Write(&out, []Machine{m}, Rules{Allowed: allowed, Partial: true}) {
		t.Errorf("partial:\n%s", &out)
	}
	if Write(&out, []Machine{m}, Rules{Allowed: allowed}) {
		t.Error("whole: neither the idle program nor the unused line was seen")
	}
	m.Packages = m.Packages[:1]
	if Write(&out, []Machine{m}, Rules{Partial: true}) {
		t.Error("partial: nothing ran at all")
	}
}

func TestInstructions(t *testing.T) {
	machines := []Machine{
		{Kernel: "5.10.262", Packages: []Package{{Instructions: map[string]int{"socklb connect4": 1792, "socklb sendmsg4": 9}}}},
		{Kernel: "6.1", Packages: []Package{{Instructions: map[string]int{"socklb connect4": 12}}}},
	}
	want := "  INSTRUCTIONS VERIFIED  5.10.262  6.1\n        socklb connect4      1792   12\n        socklb sendmsg4         9    -\n"
	if got := Instructions(machines); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := Instructions(machines[:0]); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestParseAllowedWantsAReason(t *testing.T) {
	if _, err := ParseAllowed("# comment\n\n* a/TestB\n"); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("%v", err)
	}
}
