package cgroup

import (
	"strings"
	"testing"
)

func TestCgroupMounts(t *testing.T) {
	const mountinfo = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:5 - cgroup2 cgroup2 rw
42 31 0:38 /pod /mnt/a\040b rw - cgroup2 none rw
`
	got, err := mountsIn(strings.NewReader(mountinfo))
	if err != nil || len(got) != 2 || got[0] != "/sys/fs/cgroup/unified" || got[1] != "/mnt/a b" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOwnCgroup(t *testing.T) {
	if got, err := ownCgroup("4:memory:/a\n0::/user.slice/x\n"); err != nil || got != "/user.slice/x" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := ownCgroup("4:memory:/a\n"); err == nil {
		t.Error("no error without cgroup v2")
	}
}
