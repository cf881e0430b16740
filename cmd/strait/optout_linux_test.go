package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/cli/kernel"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/testutil"
)

// TestOptOutDryRunRefusesAlike: what cannot opt out is refused by a dry run with the same words, and the same
// exit code, as by the change itself; and nothing is changed by either.
func TestOptOutDryRunRefusesAlike(t *testing.T) {
	pins := filepath.Join(testutil.BPFFS(t), "strait")
	cgroup := testutil.Cgroup(t)
	balance(t, pins, cgroup, datapath.Frontend{Addr: frontend("10.96.0.1:80/TCP")})
	deep := filepath.Join(cgroup, strings.Repeat("d/", 31))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	strait := func(args ...string) result {
		e := world(append([]string{"opt-out"}, args...)...).on("/nonexistent/s").with("STRAIT_PINS", pins)
		e.kernel = kernel.Real()
		return e.run(t)
	}
	for _, tt := range []struct{ cgroup, want string }{
		{filepath.Dir(cgroup), "is the root: that would opt out every process"},
		{deep, "32 deep: only the first 31 levels"},
		{t.TempDir(), "is not a cgroup v2 directory"},
	} {
		dry, wet := strait("add", tt.cgroup, "--dry-run"), strait("add", tt.cgroup)
		if dry != wet || dry.code != cli.ExitProblem || !strings.Contains(dry.stderr, tt.want) {
			t.Errorf("%s: dry run %+v, change %+v; want %q of both", tt.cgroup, dry, wet, tt.want)
		}
	}
	if got := strait("list"); got.code != cli.ExitOK || !strings.Contains(got.stdout, "0 cgroups") {
		t.Errorf("list: %+v", got)
	}
}
