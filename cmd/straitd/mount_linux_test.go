package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"strait.io/strait/internal/testutil"
)

// mounts are the types of what is mounted on a folder, one over the other.
func mounts(t *testing.T, dir string) string {
	t.Helper()
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for line := range strings.Lines(string(info)) {
		// proc_pid_mountinfo(5): the fifth field is the mount point, the type follows a lone hyphen.
		mount, source, _ := strings.Cut(line, " - ")
		if strings.Fields(mount)[4] == dir {
			types = append(types, strings.Fields(source)[0])
		}
	}
	return strings.Join(types, " ")
}

// TestMountBPFFS: the init container of the chart's bpf.mount makes a bpffs where there is none, and only there.
func TestMountBPFFS(t *testing.T) {
	if !testutil.Inside(t, 0) { // in a mount namespace of its own
		return
	}
	run := func(args ...string) error {
		c := command()
		c.SetArgs(append([]string{"mount-bpffs"}, args...))
		return c.ExecuteContext(t.Context())
	}
	theirs := testutil.BPFFS(t)
	if err := run(theirs); err != nil || mounts(t, theirs) != "bpf" {
		t.Errorf("where systemd mounted one: %v, mounts %q", err, mounts(t, theirs))
	}

	dir := t.TempDir()
	if got := mounts(t, dir); got != "" {
		t.Fatalf("%s is mounted already: %s", dir, got)
	}
	for _, time := range []string{"first", "second"} {
		if err := run(dir); err != nil {
			t.Fatalf("the %s time: %v", time, err)
		}
		if time == "first" {
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, 0); err != nil {
					t.Errorf("unmount %s: %v", dir, err)
				}
			})
		}
		if got := mounts(t, dir); got != "bpf" {
			t.Errorf("the %s time: mounts %q, want one bpf", time, got)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may look into it: %v %v", info.Mode(), err)
	}
	if err := os.Mkdir(filepath.Join(dir, "strait"), 0o700); err != nil { // where the daemon pins
		t.Error(err)
	}

	missing := filepath.Join(t.TempDir(), "missing")
	if err := run(missing); err == nil || !strings.Contains(err.Error(), missing+": no such file or directory") {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), "accepts 1 arg") {
		t.Errorf("no folder: %v", err)
	}
}
