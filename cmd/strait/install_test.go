package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestSplitImage(t *testing.T) {
	for ref, want := range map[string]string{
		"strait":                          "strait  ",
		"reg.example:5000/a/strait":       "reg.example:5000/a/strait  ",
		"reg.example:5000/strait:v1":      "reg.example:5000/strait v1 ",
		"localhost/strait:dev@sha256:00f": "localhost/strait dev sha256:00f",
	} {
		m := splitImage(ref)
		if got := fmt.Sprint(m["repository"], " ", m["tag"], " ", m["digest"]); got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}

// TestClusterUsage: what can be known without an API server is said without one.
func TestClusterUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"clusterset", "connect", "--context", "a"}, exitUsage, "needs two clusters"},
		{[]string{"install", "--kubeconfig", "/nonexistent", "--context", "a"}, exitProblem, `context "a"`},
		{[]string{"install", "--kubeconfig", "/nonexistent", "extra"}, exitUsage, "extra"},
	} {
		if got := world(c.args...).run(t); got.code != c.code || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%v: exit code %d, %s", c.args, got.code, got.stderr)
		}
	}
}
