package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"strait.io/strait/daemon"
)

func TestRemoveState(t *testing.T) {
	dir := t.TempDir()
	c := daemon.Config{StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run")}
	for _, d := range []string{c.StateDir, c.RunDir} {
		if err := os.MkdirAll(filepath.Join(d, "inner"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := daemon.RemoveState(c); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	// Folders that do not exist, so that the test does no harm if the check fails.
	if err := daemon.RemoveState(daemon.Config{StateDir: "/strait-t-nothing", RunDir: filepath.Join(dir, "run")}); err == nil {
		t.Error("a folder of the root may be removed")
	}
}
