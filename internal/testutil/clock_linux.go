package testutil

import (
	"embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// clockEnv names the file that holds the change of a clock to a daemon. See testdata/clock.
const clockEnv = "STRAIT_TEST_CLOCK"

// Clock changes what time it is for one daemon, also while it runs. The daemon is straitd's own source,
// and a file of testdata that makes the Go runtime ask for the time elsewhere.
type Clock struct {
	t    testing.TB
	file string
}

// NewClock returns a clock that is right. It skips the test where the daemon for it cannot be built.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	NeedClock(t)
	c := &Clock{t, filepath.Join(t.TempDir(), "clock")}
	if err := os.WriteFile(c.file, make([]byte, 16), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// NeedClock skips a test whose daemons have clocks, where BuildClock cannot build them.
func NeedClock(t testing.TB) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("testdata/clock has no code for " + runtime.GOARCH)
	}
}

// Env is what the environment of the daemon must have, as NAME=VALUE.
func (c *Clock) Env() string { return clockEnv + "=" + c.file }

// Set changes the clock by so much.
func (c *Clock) Set(ahead time.Duration) {
	c.t.Helper()
	c.write(0, ahead)
}

// Passes lets so much time pass for the daemon, as when its machine was suspended.
func (c *Clock) Passes(d time.Duration) {
	c.t.Helper()
	c.write(0, d)
	c.write(8, d)
}

func (c *Clock) write(at int64, ahead time.Duration) {
	c.t.Helper()
	f, err := os.OpenFile(c.file, os.O_WRONLY, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	// In place: the daemon maps the file.
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(ahead/time.Second))), at); err != nil {
		c.t.Fatal(err)
	}
}

//go:embed testdata/clock
var clockSource embed.FS

// BuildClock builds straitd-clock into the directory of Programs: the daemon whose clock can be set.
func BuildClock(dir string) error {
	main, err := exec.Command("go", "list", "-f", "{{.Dir}}", "strait.io/strait/cmd/straitd").Output()
	if err != nil {
		return fmt.Errorf("find straitd's source: %w", err)
	}
	replace := map[string]string{}
	for _, name := range []string{"clock.go", "clock_amd64.s"} {
		text, err := clockSource.ReadFile("testdata/clock/" + name)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "zz_"+name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		replace[filepath.Join(strings.TrimSpace(string(main)), "zz_"+name)] = file
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
}
