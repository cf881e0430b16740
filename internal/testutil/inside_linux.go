package testutil

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideEnv is set to the cgroup of a test process that Inside started.
const insideEnv = "STRAIT_TEST_CGROUP"

// Inside runs the calling test again, in a separate process whose sockets belong to a new cgroup
// and a new network namespace with lo up. Mounts that it makes disappear with it. Namespaces are
// additional CLONE_NEW… flags. Inside returns true in that process. In the outer process it returns
// false once the inner one is done; the caller must then return.
func Inside(t testing.TB, namespaces uintptr) bool {
	t.Helper()
	if InsideCgroup() != "" {
		if err := PrivateMounts(); err != nil {
			t.Fatalf("make mounts private: %v", err)
		}
		if err := LoopbackUp(); err != nil {
			t.Fatal(err)
		}
		reservePort(t)
		return true
	}
	NeedRoot(t)
	cgroup := Cgroup(t)
	f, err := os.Open(cgroup)
	if err != nil {
		t.Fatalf("open cgroup: %v", err)
	}
	defer f.Close()
	_, bench := t.(*testing.B)
	cmd := exec.CommandContext(t.Context(), os.Args[0], insideArgs(t.Name(), bench, testing.Short())...)
	cmd.Env = append(os.Environ(), insideEnv+"="+cgroup)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		UseCgroupFD: true, CgroupFD: int(f.Fd()),
		// Not Unshareflags: with it Go makes mounts private, which fails in a chroot.
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | namespaces,
	}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Fatalf("inside: %v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP: "+t.Name()+" ")):
		t.Skipf("inside:\n%s", strings.TrimSpace(string(out)))
	case bench:
		fmt.Printf("%s", out) // Logf keeps ten lines
	default:
		t.Logf("inside:\n%s", strings.TrimSpace(string(out)))
	}
	return false
}

// InsideParallel is Inside for a test that runs in parallel with others of its package (t.Parallel).
func InsideParallel(t *testing.T, namespaces uintptr) bool {
	t.Helper()
	if InsideCgroup() == "" {
		t.Parallel()
	}
	return Inside(t, namespaces)
}

// insideArgs returns the arguments of the inner process. It passes on -short.
func insideArgs(name string, bench, short bool) []string {
	args := []string{"-test.v", "-test.timeout=5m", "-test.run=^" + name + "$"}
	if bench {
		args = []string{"-test.run=^$", "-test.bench=^" + name + "$"}
	}
	if short {
		args = append(args, "-test.short")
	}
	return args
}

// InsideCgroup returns the cgroup of a process that Inside started; empty in any other process.
func InsideCgroup() string { return os.Getenv(insideEnv) }
