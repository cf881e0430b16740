package redteam

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// clockEnv names the file that holds the change of a clock to a daemon. See testdata/clock.
const clockEnv = "STRAIT_REDTEAM_CLOCK"

// clock changes what time it is for a daemon, also while it runs. The daemon is straitd's own source,
// and a file of testdata that makes the Go runtime ask for the time elsewhere.
type clock struct {
	w    *world
	file string
}

// straitd returns a command that runs the daemon with this clock.
func (c *clock) straitd(programs string, args ...string) *exec.Cmd {
	if c == nil {
		return exec.Command(filepath.Join(programs, "straitd"), args...)
	}
	cmd := exec.Command(filepath.Join(programs, "straitd-clock"), args...)
	cmd.Env = append(os.Environ(), clockEnv+"="+c.file)
	return cmd
}

// set changes the clock by so much.
func (c *clock) set(ahead time.Duration) { c.write(0, ahead) }

// passes lets so much time pass for the daemon, as when its machine was suspended.
func (c *clock) passes(d time.Duration) {
	c.write(0, d)
	c.write(8, d)
}

func (c *clock) write(at int64, ahead time.Duration) {
	c.w.Helper()
	f, err := os.OpenFile(c.file, os.O_WRONLY, 0)
	c.w.must(err)
	defer f.Close()
	// In place: the daemon maps the file.
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(ahead/time.Second))), at)
	c.w.must(err)
}

// newClock returns a clock that is right.
func (w *world) newClock() *clock {
	w.Helper()
	c := &clock{w, filepath.Join(w.TempDir(), "clock")}
	w.must(os.WriteFile(c.file, make([]byte, 16), 0o600))
	return c
}

// insideWithClocks is inside, for tests that have clocks.
func insideWithClocks(t *testing.T) bool {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("testdata/clock has no code for " + runtime.GOARCH)
	}
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
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for _, name := range []string{"clock.go", "clock_amd64.s"} {
		replace[filepath.Join(here, "../../cmd/straitd/zz_"+name)] = filepath.Join(here, "testdata/clock", name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-overlay", file, "-buildvcs=false", "-trimpath", "-ldflags", "-s -w -checklinkname=0",
		"-o", filepath.Join(dir, "straitd-clock"), "strait.io/strait/cmd/straitd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})
