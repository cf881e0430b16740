package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// memoryCgroup makes a cgroup whose processes together may take so many bytes, and returns its directory.
func memoryCgroup(t *testing.T, limit int) string {
	t.Helper()
	dir, file := "", "memory.max"
	if root := "/sys/fs/cgroup/memory"; exists(filepath.Join(root, "memory.limit_in_bytes")) { // cgroup v1
		var err error
		if dir, err = os.MkdirTemp(root, "strait-t-"); err != nil {
			t.Fatalf("make cgroup: %v", err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Errorf("remove cgroup: %v", err)
			}
		})
		file = "memory.limit_in_bytes"
	} else if dir = testutil.Cgroup(t); !exists(filepath.Join(dir, file)) {
		t.Skip("the cgroups of this machine cannot limit memory")
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(limit)), 0o600); err != nil {
		t.Fatalf("limit a cgroup's memory: %v", err)
	}
	return dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestLimitMemory: Go's runtime keeps to four fifths of the cgroup's limit, unless GOMEMLIMIT says something else.
func TestLimitMemory(t *testing.T) {
	const inside = "STRAIT_TEST_LIMIT_MEMORY"
	if os.Getenv(inside) != "" {
		limitMemory()
		t.Logf("limit=%d.", debug.SetMemoryLimit(-1))
		return
	}
	testutil.NeedRoot(t)
	const mib = 1 << 20
	cgroup := memoryCgroup(t, 250*mib)
	for _, c := range []struct {
		name, env string
		want      int
	}{
		{"cgroup", "", 200 * mib},
		{"GOMEMLIMIT", "GOMEMLIMIT=100MiB", 100 * mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", `echo $$ > "$1" && exec "$0" -test.v -test.run='^TestLimitMemory$'`,
				os.Args[0], filepath.Join(cgroup, "cgroup.procs"))
			cmd.Env = append(os.Environ(), inside+"=1", c.env)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), fmt.Sprintf("limit=%d.", c.want)) {
				t.Errorf("want limit=%d: %v\n%s", c.want, err, out)
			}
		})
	}
}
