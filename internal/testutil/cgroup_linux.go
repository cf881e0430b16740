package testutil

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroup creates an empty cgroup (v2) with a unique name and returns its path. At the end of the
// test it is removed with its children. A process that the test left in it fails the test, except
// the test's own, which is moved out.
func Cgroup(t testing.TB) string {
	t.Helper()
	NeedRoot(t)
	root, err := cgroupRoot()
	if err != nil {
		Missing(t, err.Error())
		return ""
	}
	dir, err := os.MkdirTemp(root, "strait-t-")
	if err != nil {
		t.Fatalf("make cgroup: %v", err)
	}
	// An interrupted test has not ended its processes.
	forget := AtInterrupt(func() {
		kill(dir)
		_ = removeCgroup(root, dir)
	})
	t.Cleanup(func() {
		forget()
		if err := removeCgroup(root, dir); err != nil {
			t.Errorf("remove cgroup: %v", err)
		}
	})
	return dir
}

// cgroupRoot finds where this machine has cgroup v2 mounted: at /sys/fs/cgroup, or elsewhere next
// to v1.
func cgroupRoot() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	return findCgroup2(f)
}

// findCgroup2 reads mountinfo (proc_pid_mountinfo(5)) and returns the first mount of the whole
// cgroup v2 tree. A mount of a subtree belongs to a container, where socket hooks see no other
// process.
func findCgroup2(mountinfo io.Reader) (string, error) {
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		mount, source, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(mount)
		if ok && len(fields) >= 5 && strings.HasPrefix(source, "cgroup2 ") && fields[3] == "/" {
			return fields[4], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("read mountinfo: %w", err)
	}
	return "", errors.New("needs cgroup v2: run `mount -t cgroup2 none DIRECTORY`")
}

// removeCgroup removes dir and its children, deepest first. A process that was just killed takes a
// moment to leave its cgroup, so removeCgroup retries for a second.
func removeCgroup(root, dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the test removed it
	}
	if err != nil {
		return err
	}
	slices.Reverse(dirs)
	for _, d := range dirs {
		if err := leave(root, d); err != nil {
			return err
		}
		for deadline := time.Now().Add(time.Second); ; time.Sleep(pollEvery) {
			err := os.Remove(d)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("%w (processes: %q)", err, procs(d))
			}
		}
	}
	return nil
}

// leave moves the test process to the root cgroup if it is in dir.
func leave(root, dir string) error {
	self := strconv.Itoa(os.Getpid())
	if !slices.Contains(procs(dir), self) {
		return nil
	}
	return os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(self), 0)
}

// kill kills all processes in dir and below, except this one.
func kill(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // children come and go
		}
		for _, p := range procs(path) {
			if pid, err := strconv.Atoi(p); err == nil && pid != os.Getpid() {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		return nil
	})
}

func procs(dir string) []string {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil // the cgroup is gone, and so are its processes
	}
	return strings.Fields(string(b))
}
