package sockdestroy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// clientEnv marks a client process.
const clientEnv = "STRAIT_TEST_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(clientEnv) != "" {
		runClient()
		return
	}
	// The main thread's network namespace is the process's in /proc: no test is to move it.
	runtime.LockOSThread()
	os.Exit(m.Run())
}

// inside runs the calling test again, as the first process of a machine of its own as far as procfs,
// mounts and network go, in a fresh cgroup.
func inside(t testing.TB) bool {
	t.Helper()
	if !testutil.Inside(t, unix.CLONE_NEWPID) {
		return false
	}
	settleIn(t)
	return true
}

// settleIn gives the process its own /proc, and lets go of namespaces that others have mounted.
func settleIn(t testing.TB) {
	t.Helper()
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatalf("mount /proc: %v", err)
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = mounted(f, func(_ uint64, point string) {
		// EINVAL: another mount covers this one, so its path is not a mount point, and the destroyer
		// cannot enter it by that path either. `ip netns add` covers what others have mounted.
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			t.Errorf("unmount %s: %v", point, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// machine is a load balancer and what destroys the stale sockets of its clients.
type machine struct {
	t       testing.TB
	lb      *socklb.LB
	records func() ([]Record, error)
	*Destroyer
}

// newMachine attaches a load balancer to the cgroup of inside. forced is the method to use.
func newMachine(t testing.TB, forced method, policy Policy) *machine {
	t.Helper()
	cfg := socklb.Config{
		Pins:         filepath.Join(testutil.BPFFS(t), "strait"),
		Cgroup:       testutil.InsideCgroup(),
		MaxFrontends: 64, MaxBackends: 1024, MaxSockets: 1 << 14,
		AllowVirtualRoot: true,
		Log:              testutil.Logger(t),
	}
	lb, err := socklb.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := inspect.OpenReader(cfg.Pins)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	records := func() ([]Record, error) { return recordsOf(reader) }
	d := New(Config{Records: records, Policy: policy, Log: testutil.Logger(t)})
	d.method = forced
	t.Cleanup(func() {
		if err := errors.Join(d.Close(), lb.Close(), socklb.CleanUp(cfg)); err != nil {
			t.Error(err)
		}
	})
	return &machine{t, lb, records, d}
}

func recordsOf(r *inspect.Reader) ([]Record, error) {
	rows, err := r.Sockets()
	records := make([]Record, 0, len(rows))
	for _, row := range rows {
		records = append(records, Record{
			Cookie: row.Cookie, Proto: row.Proto, Frontend: row.Frontend, Backend: row.Backend, Connected: row.Connected,
		})
	}
	return records, err
}

// set makes the frontends of all forms of address lead to the same one of two backends.
func (m *machine) set(backends ...place) []datapath.Frontend {
	m.t.Helper()
	var want []datapath.Frontend
	for _, f := range []form{v4, v6} {
		for _, proto := range []l4.Proto{l4.TCP, l4.UDP} {
			fe := datapath.Frontend{Addr: l4.New(f.vip().Addr(), f.vip().Port(), proto)}
			for _, b := range backends {
				at := f.backend(b)
				fe.Backends = append(fe.Backends, datapath.Backend{IP: at.Addr(), Port: at.Port(), Weight: 1})
			}
			want = append(want, fe)
		}
	}
	if err := problem.Strict(m.lb.Reconcile(want, true)); err != nil {
		m.t.Fatal(err)
	}
	return want
}

// methods are the ways to destroy that a kernel has; the test is run with each. sock_diag is everywhere.
func methods(t *testing.T, test func(t *testing.T, forced method)) {
	t.Run("sock_diag", func(t *testing.T) {
		if err := haveDiag(); err != nil {
			testutil.Missing(t, "this kernel has no sock_diag that destroys: "+err.Error())
			return
		}
		test(t, newDiag())
	})
	t.Run("iterator", func(t *testing.T) {
		if !newerThan(t, 6, 5) {
			t.Skip("no bpf_sock_destroy before Linux 6.5; sock_diag does the same")
		}
		it, err := newIterator()
		if err != nil {
			t.Fatalf("a kernel of 6.5 and newer has iterators that destroy: %v", err)
		}
		test(t, it)
	})
}

// newerThan reports that the kernel is of this version or newer.
func newerThan(t testing.TB, major, minor int) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); err != nil {
		t.Fatal(err)
	}
	return a > major || a == major && b >= minor
}

// mountNamespace makes a network namespace that no process is in, runs fn in it, and returns where it is
// mounted.
func mountNamespace(t testing.TB, fn func() error) (point string) {
	t.Helper()
	point = filepath.Join(t.TempDir(), "netns")
	if err := os.WriteFile(point, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		err := testutil.LoopbackUp()
		if err == nil {
			err = unix.Mount("/proc/thread-self/ns/net", point, "", unix.MS_BIND, "")
		}
		if err == nil {
			err = fn()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH) }) // the test may have done so
	return point
}
