package socklb

import (
	"strings"
	"testing"
)

func TestConfigValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		want []string // one per line of the error
	}{
		{"least", Config{Pins: "/sys/fs/bpf/strait"}, nil},
		{"empty", Config{}, []string{"pins: is empty"}},
		{"all at once", Config{Pins: "strait", Cgroup: "x", MaxFrontends: 1 << 30, MaxBackends: 1 << 30, MaxSockets: 3},
			[]string{"pins: ", "cgroup: ", "maxFrontends: ", "maxBackends: ", "maxSockets: 3 is not a power of two"}},
		{"dot", Config{Pins: "/sys/fs/bpf/a.b"}, []string{"pins: "}},
		{"root", Config{Pins: "/"}, []string{"pins: "}},
		{"too many sockets", Config{Pins: "/p", MaxSockets: 1 << 31}, []string{"maxSockets: "}},
	} {
		err := tt.cfg.Validate()
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for i, w := range tt.want {
			if !strings.HasPrefix(lines[i], w) {
				t.Errorf("%s: line %d is %q, want %q…", tt.name, i, lines[i], w)
			}
		}
	}
}

func TestCgroupMounts(t *testing.T) {
	const mountinfo = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:5 - cgroup2 cgroup2 rw
42 31 0:38 /pod /mnt/a\040b rw - cgroup2 none rw
`
	got, err := cgroupMounts(strings.NewReader(mountinfo))
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
