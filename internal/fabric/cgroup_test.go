package fabric

import "testing"

func TestFindCgroup2(t *testing.T) {
	hybrid := "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
	for info, want := range map[string]string{
		hybrid: "/sys/fs/cgroup/unified",
		"30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n": "/sys/fs/cgroup",
		"30 23 0:26 / /my\\040groups rw - cgroup2 none rw\n":                        "/my groups",
		"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n":                         "",
		"": "",
	} {
		if got := FindCgroup2(info); got != want {
			t.Errorf("findCgroup2(%q) = %q, want %q", info, got, want)
		}
	}
}
