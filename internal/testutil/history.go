package testutil

import (
	"os/exec"
	"testing"
)

// SourceAt returns a folder with the source of strait as of a commit of this checkout's history. Without a
// history, the test is skipped: a source can be without one.
func SourceAt(t *testing.T, checkout, commit string) (dir string) {
	t.Helper()
	if exec.CommandContext(t.Context(), "git", "-C", checkout, "cat-file", "-e", commit).Run() != nil {
		t.Skip("the source has no history: this test builds the version before from it")
	}
	dir = t.TempDir()
	script := exec.CommandContext(t.Context(), "sh", "-c", `git -C "$1" archive "$2" | tar -x -C "$3"`, "sh", checkout, commit, dir)
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("read the source of %s: %v\n%s", commit, err, out)
	}
	return dir
}
