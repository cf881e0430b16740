package fabric

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// FindCgroup2 returns the machine's cgroup v2 mount point; empty if none is mounted. On a hybrid
// machine it is next to the v1 trees.
func FindCgroup2(mountinfo string) string {
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(left), strings.Fields(right)
		if ok && len(fields) >= 5 && len(kind) > 0 && kind[0] == "cgroup2" {
			return unescapeMount(fields[4])
		}
	}
	return ""
}

// unescapeMount undoes the octal escapes of /proc/self/mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Cgroup2 finds the cgroup v2 mount, or mounts one at private for the lifetime of the lab.
func Cgroup2(private string) (mount string, made bool, err error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false, fmt.Errorf("read mounts: %w (is /proc mounted?)", err)
	}
	if mount := FindCgroup2(string(info)); mount != "" {
		return mount, false, nil
	}
	if err := os.MkdirAll(private, 0o755); err != nil {
		return "", false, fmt.Errorf("make cgroup mount point: %w", err)
	}
	if err := unix.Mount("cgroup2", private, "cgroup2", 0, ""); err != nil {
		return "", false, fmt.Errorf("no cgroup v2 is mounted and mounting one at %s does not work: %w; "+
			"boot with a kernel that has cgroup v2", private, err)
	}
	return private, true, nil
}

// MakeCgroups creates dir and its children.
func MakeCgroups(dir string, children ...string) error {
	for _, d := range append([]string{""}, children...) {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
	}
	return nil
}

// cgroupTree lists dir and all cgroups below it, deepest first.
func cgroupTree(dir string) []string {
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	slices.Reverse(dirs)
	return dirs
}

// pids lists the processes in a cgroup and below.
func pids(dir string) []int {
	var out []int
	for _, d := range cgroupTree(dir) {
		b, err := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		if err != nil {
			continue
		}
		for f := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
				out = append(out, pid)
			}
		}
	}
	return out
}

// KillCgroup kills every process in a cgroup and below with SIGKILL and waits until they are gone.
func KillCgroup(ctx context.Context, dir string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		all := pids(dir)
		if len(all) == 0 {
			return nil
		}
		for _, pid := range all {
			// An error means that the process is already gone, as wanted.
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill processes in %s: %v still run after 10s", dir, all)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// RemoveCgroup removes a cgroup and all below it. It succeeds if there is none. Its processes must
// be dead; the kernel may take a moment to notice.
func RemoveCgroup(dir string) error {
	var last error
	for range 200 {
		last = nil
		for _, d := range cgroupTree(dir) {
			if err := unix.Rmdir(d); err != nil && !errors.Is(err, unix.ENOENT) {
				last = fmt.Errorf("remove cgroup %s: %w", d, err)
			}
		}
		if last == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return last
}
