package socklb

import (
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/rlimit"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// inside runs the calling test in a process, a cgroup and a network namespace of its own.
func inside(t testing.TB) bool {
	t.Helper()
	return lifted(t, testutil.Inside(t, 0))
}

// insideParallel is inside for a test that takes long, and may take longer. Others of that kind run
// beside it: it must not measure times, nor expect that a new socket has a home of its own.
func insideParallel(t *testing.T) bool {
	t.Helper()
	return lifted(t, testutil.InsideParallel(t, 0))
}

// lifted lifts the limit on locked memory where the test goes on, as straitd does before all else: before
// Linux 5.11, nothing can be loaded otherwise. It returns is.
func lifted(t testing.TB, is bool) bool {
	t.Helper()
	if is {
		if err := rlimit.RemoveMemlock(); err != nil {
			t.Fatal(err)
		}
	}
	return is
}

// config is that of a small balancer on the cgroup of inside.
func config(t testing.TB) Config {
	t.Helper()
	return Config{
		Pins:             filepath.Join(testutil.BPFFS(t), "strait"),
		Cgroup:           testutil.InsideCgroup(),
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
	if err := problem.Strict(l.Reconcile(want, true)); err != nil {
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

// counterRows are what the maps counted of backends and of frontends.
func counterRows(l *LB) (backends []inspect.BackendRow, frontends []inspect.ServiceRow, err error) {
	err = l.Look(func(r *inspect.Reader) (err error) {
		if backends, err = r.Backends(); err == nil {
			frontends, err = r.Services()
		}
		return err
	})
	return backends, frontends, err
}
