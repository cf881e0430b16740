package redteam

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"strait.io/strait/internal/testutil"
)

// straitd returns a command that runs the daemon, with the member's own clock if it has one.
func (m *member) straitd(args ...string) *exec.Cmd {
	if m.clock == nil {
		return exec.Command(filepath.Join(m.w.programs, "straitd"), args...)
	}
	cmd := exec.Command(filepath.Join(m.w.programs, "straitd-clock"), args...)
	cmd.Env = append(os.Environ(), m.clock.Env())
	return cmd
}

// insideWithClocks is inside, for tests that have clocks.
func insideWithClocks(t *testing.T) bool {
	t.Helper()
	testutil.NeedClock(t)
	if testutil.InsideCgroup() == "" {
		testutil.NeedRoot(t)
		if err := buildClock(); err != nil {
			t.Fatal(err)
		}
	}
	return inside(t)
}

// buildClock builds the daemon whose clock can be set, beside the other programs.
var buildClock = sync.OnceValue(func() error {
	dir, err := programs()
	if err != nil {
		return err
	}
	return testutil.BuildClock(dir)
})
