package e2e

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// traces lists what strait may leave on a machine: namespaces and their files, cgroups, mounts, pins,
// state, sockets, temporary files, links in this network namespace, and processes of the binaries.
func traces(t *testing.T, bin string) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{
		"/run/netns/strait-*", "/var/run/netns/strait-*", "/etc/netns/strait-*",
		"/sys/fs/bpf/strait*", "/var/run/wireguard/*", "/run/strait*", "/var/lib/strait*", "/tmp/strait*", filepath.Join(os.TempDir(), "strait*"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	out = append(out, cgroups()...)
	out = append(out, mounts(t)...)
	out = append(out, links(t)...)
	out = append(out, processes(t, bin)...)
	// Other tests of strait, which may run meanwhile, name their things strait-t-, and Kubernetes' labs strait-lab-:
	// they are theirs to remove.
	out = slices.DeleteFunc(out, func(s string) bool {
		return strings.Contains(s, "strait-t-") || strings.Contains(s, "strait-lab-")
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// cgroups lists those of any hierarchy with strait in the name.
func cgroups() (out []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // cgroups of others come and go while this looks
		}
		if d.IsDir() && strings.Contains(d.Name(), "strait") {
			out = append(out, "cgroup "+path)
			return fs.SkipDir
		}
		return nil
	})
	return out
}

func mounts(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		// The fifth field is where; a checkout may well be a mount, and be called strait.
		if f := strings.Fields(line); len(f) > 4 && (strings.Contains(f[4], "strait-") || strings.Contains(f[4], ".demo")) {
			out = append(out, "mount "+f[4])
		}
	}
	return out
}

// links lists the interfaces of the network namespace that the demo was started in.
func links(t *testing.T) (out []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		out = append(out, "link "+l.Name)
	}
	return out
}

// processes lists those that run one of the binaries.
func processes(t *testing.T, bin string) (out []string) {
	t.Helper()
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, exe := range exes {
		if path, err := os.Readlink(exe); err == nil && strings.HasPrefix(path, bin+"/") {
			out = append(out, "process "+filepath.Base(filepath.Dir(exe))+" "+path)
		}
	}
	return out
}

// wantNoTraces fails the test if its end finds anything that its start did not. A process that was killed
// may be seen for a moment longer.
func wantNoTraces(t *testing.T, bin string) {
	t.Helper()
	before := traces(t, bin)
	t.Cleanup(func() {
		var left []string
		testutil.Eventually(t, leaveWithin, func() error {
			left = slices.DeleteFunc(traces(t, bin), func(s string) bool { return slices.Contains(before, s) })
			return orNil(left)
		})
	})
}
