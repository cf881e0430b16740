package socklb

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/testutil"
)

// insideEnv names the cgroup of a test process that runs inside one.
const insideEnv = "STRAIT_TEST_CGROUP"

// inside runs the calling test again, in a process of its own whose sockets belong to a fresh cgroup and
// a fresh network namespace; mounts that it makes go with it. It returns true there, and false in the
// outer process once the inner is done: the caller returns then.
func inside(t testing.TB) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		if err := testutil.PrivateMounts(); err != nil {
			t.Fatal(err)
		}
		loopbackUp(t)
		return true
	}
	testutil.NeedRoot(t)
	cgroup := testutil.Cgroup(t)
	f, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	args := []string{"-test.v", "-test.timeout=5m", "-test.run=^" + t.Name() + "$"}
	if _, ok := t.(*testing.B); ok {
		args = []string{"-test.run=^$", "-test.bench=^" + t.Name() + "$"}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), insideEnv+"="+cgroup)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: int(f.Fd()),
		// Not Unshareflags, with which Go makes mounts private: that fails in a chroot.
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("inside: %v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("--- SKIP: "+t.Name()+" ")) {
		t.Skipf("inside:\n%s", strings.TrimSpace(string(out)))
	}
	t.Logf("inside:\n%s", strings.TrimSpace(string(out)))
	return false
}

func loopbackUp(t testing.TB) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err == nil {
		ifr.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
	}
	if err != nil {
		t.Fatalf("set lo up: %v", err)
	}
}

// config is that of a small balancer on the cgroup of inside.
func config(t testing.TB) Config {
	t.Helper()
	return Config{
		Pins:             filepath.Join(testutil.BPFFS(t), "strait"),
		Cgroup:           os.Getenv(insideEnv),
		MaxFrontends:     64,
		MaxBackends:      1024,
		MaxSockets:       1024,
		AllowVirtualRoot: true,
		Log:              testutil.Logger(t),
	}
}

// opened opens a balancer until the test ends.
func opened(t testing.TB, cfg Config) *LB {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := CleanUp(cfg); err != nil {
			t.Error(err)
		}
	})
	return l
}

func reconcile(t testing.TB, l *LB, want ...datapath.Frontend) {
	t.Helper()
	if err := l.Reconcile(want, true); err != nil {
		t.Fatal(err)
	}
}

// reload puts the programs on the hooks again as on a kernel that lacks a feature.
func reload(t testing.TB, l *LB, cfg Config, without string) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range l.features {
		l.features[i].OK = l.features[i].OK && l.features[i].Name != without
	}
	if err := l.load(cfg.withDefaults()); err != nil {
		t.Fatal(err)
	}
}

// ptr is for raw system calls.
func ptr[T any](v *T) unsafe.Pointer { return unsafe.Pointer(v) }
