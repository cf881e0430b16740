package testutil

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	pureV2 = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	hybrid = "37 31 0:34 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	part = "41 31 0:38 /docker/abc /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
)

func TestFindCgroup2(t *testing.T) {
	for _, tc := range []struct{ name, mountinfo, want string }{
		{"v2 only", pureV2, "/sys/fs/cgroup"},
		{"v2 beside v1", hybrid, "/sys/fs/cgroup/unified"},
		{"a part of the tree is no root", part, ""},
		{"the root after a part", part + pureV2, "/sys/fs/cgroup"},
		{"v1 only", strings.SplitAfter(hybrid, "\n")[0], ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := findCgroup2(strings.NewReader(tc.mountinfo))
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestBPFFS(t *testing.T) {
	var dir string
	t.Run("mounts", func(t *testing.T) {
		dir = BPFFS(t)
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil || s.Type != unix.BPF_FS_MAGIC {
			t.Errorf("%s has type %#x (%v), want a bpffs", dir, s.Type, err)
		}
	})
	if _, err := os.Stat(dir); dir != "" && !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestCgroup(t *testing.T) {
	var dir string
	t.Run("holds processes", func(t *testing.T) {
		dir = Cgroup(t)
		child := filepath.Join(dir, "pod")
		if err := os.Mkdir(child, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := waiter(t) // killed before the cgroup is removed
		for pid, cg := range map[int]string{os.Getpid(): dir, cmd.Process.Pid: child} {
			if err := os.WriteFile(filepath.Join(cg, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
		if got := procs(child); len(got) != 1 || got[0] != strconv.Itoa(cmd.Process.Pid) {
			t.Errorf("processes of %s: %q", child, got)
		}
	})
	if _, err := os.Stat(dir); dir != "" && !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestNetNS(t *testing.T) {
	NeedRoot(t)
	home := inode(t)
	t.Run("enters and leaves", func(t *testing.T) {
		ns := NetNS(t)
		inside := inode(t)
		if inside == home {
			t.Error("still in the namespace that the test started in")
		}
		links, err := net.Interfaces()
		if err != nil || len(links) != 1 || links[0].Flags&net.FlagUp == 0 {
			t.Errorf("links %v (%v), want lo alone, up", links, err)
		}
		if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_reserved_ports"); err != nil || string(text) != "51820\n" {
			t.Errorf("reserved ports %q (%v), want WireGuard's", text, err)
		}
		var there uint64
		if err := ns.Do(func() error { there = inode(t); return nil }); err != nil || there != inside {
			t.Errorf("Do ran in namespace %d (%v), want %d", there, err, inside)
		}
	})
}

// TestInside: the inner process is in a cgroup and a namespace of its own, and as short as the outer.
func TestInside(t *testing.T) {
	if InsideCgroup() == "" {
		NeedRoot(t)
		t.Setenv("STRAIT_TEST_OUTER", fmt.Sprint(inode(t), testing.Short()))
	}
	if !Inside(t, 0) {
		return
	}
	var outer uint64
	var short bool
	if _, err := fmt.Sscan(os.Getenv("STRAIT_TEST_OUTER"), &outer, &short); err != nil {
		t.Fatal(err)
	}
	if inode(t) == outer {
		t.Error("still in the outer network namespace")
	}
	if testing.Short() != short {
		t.Errorf("inside -short is %v, outside %v", testing.Short(), short)
	}
	if !slices.Contains(procs(InsideCgroup()), strconv.Itoa(os.Getpid())) {
		t.Errorf("not in cgroup %s", InsideCgroup())
	}
	if links, err := net.Interfaces(); err != nil || len(links) != 1 || links[0].Flags&net.FlagUp == 0 {
		t.Errorf("links %v (%v), want lo alone, up", links, err)
	}
}

func TestInsideArgs(t *testing.T) {
	for _, tc := range []struct {
		bench, short bool
		want         string
	}{
		{false, false, "-test.v -test.timeout=5m -test.run=^TestX$"},
		{false, true, "-test.v -test.timeout=5m -test.run=^TestX$ -test.short"},
		{true, false, "-test.run=^$ -test.bench=^TestX$"},
	} {
		if got := strings.Join(insideArgs("TestX", tc.bench, tc.short), " "); got != tc.want {
			t.Errorf("bench %v, short %v: %s, want %s", tc.bench, tc.short, got, tc.want)
		}
	}
}

// inode names the calling thread's network namespace.
func inode(t *testing.T) uint64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &s); err != nil {
		t.Fatal(err)
	}
	return s.Ino
}
