package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/cli"
)

// TestSupportBundle: a bundle of two clusters answers as they did, with ages as of then, and says
// how old it is. What was not answered is reported, and is exit code 3.
func TestSupportBundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	e, _ := reaching(clusterset(nil, true), "support", "bundle", file, "--context", "c1", "--context", "c2")
	r := e.run(t)
	if r.code != cli.ExitUnknown || !strings.Contains(r.stdout, "of 2 clusters") || !strings.Contains(r.stdout, "! cluster c2, n2/status: node n2: straitd does not answer in time") {
		t.Fatalf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	live, _ := reaching(clusterset(nil, true), "status", "--context", "c1", "--context", "c2")
	want := live.run(t)
	got := world("status", "--file", file).run(t)
	want.stdout = strings.ReplaceAll(want.stdout, "ask again", "make another bundle")
	if got.stdout != want.stdout || got.code != want.code {
		t.Errorf("exit code %d, want %d; from the bundle:\n%s\nfrom the clusters:\n%s", got.code, want.code, got.stdout, want.stdout)
	}
	if !strings.Contains(got.stderr, "from a support bundle of ") {
		t.Errorf("it does not say how old it is: %s", got.stderr)
	}
	if r := world("nodes", "n1", "--file", file, "--context", "c1").run(t); r.code != 0 || !strings.Contains(r.stdout, "c1/n1") {
		t.Errorf("nodes of c1: exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	for args, code := range map[string]int{
		"graph --file " + file:                      cli.ExitUsage, // it is of two clusters
		"nodes --context c9 --file " + file:         cli.ExitProblem,
		"status --file /nowhere":                    cli.ExitUsage,
		"status --file /dev/null":                   cli.ExitUsage,
		"support bundle " + file:                    cli.ExitUsage, // it is there
		"support bundle --context c9 " + file + "2": cli.ExitUnknown,
	} {
		e, _ := reaching(clusterset(nil, false), strings.Fields(args)...)
		if r := e.run(t); r.code != code {
			t.Errorf("strait %s: exit code %d, want %d: %s%s", args, r.code, code, r.stdout, r.stderr)
		}
	}
	if _, err := os.Stat(file + "2"); err == nil {
		t.Error("a bundle without answers was written")
	}
}
