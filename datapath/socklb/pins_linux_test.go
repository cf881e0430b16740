package socklb

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// TestLBBehaviour is the test that Fake passes, on real maps.
func TestLBBehaviour(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxFrontends, cfg.MaxBackends = smallFrontends, smallBackends
	behaviour(t, opened(t, cfg))
}

// attached lists the programs on the cgroup's hooks.
func attached(t testing.TB, cgroup string) (n int) {
	t.Helper()
	f, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, h := range layout.Hooks {
		attr := struct{ fd, attach, query, flags, ids0, ids1, count, pad, x, y, z, w uint32 }{fd: uint32(f.Fd()), attach: uint32(h.Attach)}
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_QUERY, uintptr(ptr(&attr)), 48)
		if errno != 0 {
			t.Fatal(errno)
		}
		n += int(attr.count)
	}
	return n
}

// entries lists a bpffs directory without what the kernel puts into each bpffs.
func entries(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".debug") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestLifecycle: pins are whole or not there, outlive Close, and are gone after CleanUp.
func TestLifecycle(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	root := filepath.Dir(cfg.Pins)
	for range 2 {
		if err := CleanUp(cfg); err != nil {
			t.Fatalf("clean up of nothing: %v", err)
		}
	}
	l := opened(t, cfg)
	if n := attached(t, cfg.Cgroup); n != len(layout.Hooks) {
		t.Errorf("%d programs attached, want %d", n, len(layout.Hooks))
	}
	if fs, err := inspect.Read(cfg.Pins); err != nil || len(fs) != 0 {
		t.Errorf("Read: %v, %v", fs, err)
	}
	if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("second Open: %v", err)
	}
	if err := CleanUp(cfg); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("CleanUp while open: %v", err)
	}
	pod := serve(t, l4.TCP, netip.MustParseAddrPort("127.0.0.2:0"))
	vip := l4.New(families[0].vip, 80, l4.TCP)
	reconcile(t, l, datapath.Frontend{Addr: vip, Backends: one(pod)})
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Errorf("close twice: %v", err)
	}
	if fs, err := inspect.Read(cfg.Pins); err != nil || len(fs) != 1 || !fs[0].Equal(datapath.Frontend{Addr: vip, Backends: one(pod)}) {
		t.Errorf("Read: %v, %v", fs, err)
	}
	if err := problem.Strict(l.Reconcile(nil, true)); !errors.Is(err, errClosed) {
		t.Errorf("Reconcile after Close: %v", err)
	}
	if got, err := ask(t, families[0], vip); err != nil || got != pod.String() {
		t.Errorf("after Close: %q, %v", got, err)
	}
	// What a daemon leaves that dies while it makes pins, and what is another program's.
	if err := os.MkdirAll(cfg.Pins+newInfix+"123/links", 0o700); err != nil {
		t.Fatal(err)
	}
	foreign := cfg.Pins + newInfix + "east"
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := CleanUp(cfg); err != nil {
		t.Error(err)
	}
	if n := attached(t, cfg.Cgroup); n != 0 {
		t.Errorf("after CleanUp %d programs are attached", n)
	}
	if left := entries(t, root); !slices.Equal(left, []string{filepath.Base(foreign)}) {
		t.Errorf("after CleanUp: %q", left)
	}
	if _, err := inspect.Read(cfg.Pins); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Read after CleanUp: %v", err)
	}
	if _, err := ask(t, families[0], vip); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("after CleanUp: connect: %v", err)
	}
}

// TestOpenErrors: what is wrong with the machine is reported in one line, with what to do; nothing is left.
func TestOpenErrors(t *testing.T) {
	if !inside(t) {
		return
	}
	good := config(t)
	full := filepath.Join(filepath.Dir(good.Pins), "full")
	if err := os.MkdirAll(filepath.Join(full, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	later, earlier, both := filepath.Join(filepath.Dir(good.Pins), "later"), filepath.Join(filepath.Dir(good.Pins), "earlier"), filepath.Join(filepath.Dir(good.Pins), "both")
	for _, dir := range []string{later + "/layout-99", earlier + "/layout-1", both + "/layout-1", both + "/" + layout.Dir(layout.Number)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"no bpffs", func(c *Config) { c.Pins = t.TempDir() + "/strait" }, []string{"not on a bpffs", "mount -t bpf bpf /sys/fs/bpf"}},
		{"no cgroup", func(c *Config) { c.Cgroup = "/nonexistent" }, []string{"cgroup /nonexistent", "no such file"}},
		{"no cgroup v2", func(c *Config) { c.Cgroup = t.TempDir() }, []string{"is not cgroup v2"}},
		{"virtual root", func(c *Config) { c.AllowVirtualRoot = false }, []string{"is not the root of the machine's cgroup tree", "allow a virtual root"}},
		{"invalid", func(c *Config) { c.MaxSockets = 3 }, []string{"maxSockets: 3 is not a power of two"}},
		{"foreign directory", func(c *Config) { c.Pins = full }, []string{"something other than strait's pins"}},
		{"later layout", func(c *Config) { c.Pins = later }, []string{"have layout-99, but", "this program knows " + layout.Dir(layout.Number) + ";", "straitd cleanup"}},
		{"earlier layout", func(c *Config) { c.Pins = earlier }, []string{"have layout-1, but", "this program knows " + layout.Dir(layout.Number) + ";", "straitd cleanup"}},
		{"one of two layouts", func(c *Config) { c.Pins = both }, []string{"have layout-1 and " + layout.Dir(layout.Number) + ", but", "this program knows " + layout.Dir(layout.Number) + ";", "straitd cleanup"}},
	} {
		cfg := good
		tt.change(&cfg)
		l, err := Open(cfg)
		if err == nil {
			l.Close()
			t.Errorf("%s: no error", tt.name)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q lacks %q, or is more than a line", tt.name, err, w)
			}
		}
	}
	if left := entries(t, filepath.Dir(good.Pins)); !slices.Equal(left, []string{"both", "earlier", "full", "later"}) {
		t.Errorf("left behind: %q", left)
	}
}

// The error of a process without capabilities names those that it needs.
func TestOpenUnprivileged(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here, without its capabilities
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		none := [2]unix.CapUserData{}
		if err := unix.Capset(&hdr, &none[0]); err != nil {
			done <- err
			return
		}
		_, err := Open(cfg)
		done <- err
	}()
	if err := <-done; !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "run as root, or with the capabilities BPF") {
		t.Errorf("got %v", err)
	}
}

// attachRaw attaches a program that allows everything, as an old tool does: for itself alone, or not.
func attachRaw(t testing.TB, cgroup string, flags uint32) {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "foreign", Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	attr := struct{ target, prog, attach, flags, replace, pad uint32 }{uint32(f.Fd()), uint32(p.FD()), uint32(ebpf.AttachCGroupInet4Connect), flags, 0, 0}
	if _, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_ATTACH, uintptr(ptr(&attr)), 24); errno != 0 {
		t.Fatal(errno)
	}
	// It is detached with the cgroup.
}

// TestForeignProgram: one that shares is no obstacle; one that does not is a clear error, and nothing is
// left of the attempt.
func TestForeignProgram(t *testing.T) {
	if !inside(t) {
		return
	}
	for flags, name := range map[uint32]string{unix.BPF_F_ALLOW_MULTI: "shared", 0: "alone"} {
		cfg := config(t)
		cfg.Cgroup = filepath.Join(cfg.Cgroup, name)
		if err := os.Mkdir(cfg.Cgroup, 0o755); err != nil {
			t.Fatal(err)
		}
		attachRaw(t, cfg.Cgroup, flags)
		l, err := Open(cfg)
		if name == "shared" {
			if err != nil {
				t.Error(err)
				continue
			}
			if err := errors.Join(l.Close(), CleanUp(cfg)); err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "attach connect4") || !strings.Contains(err.Error(), "exclusively") {
			t.Errorf("%s: %v", name, err)
		}
		if left := entries(t, filepath.Dir(cfg.Pins)); left != nil {
			t.Errorf("%s: left behind: %q", name, left)
		}
		if n := attached(t, cfg.Cgroup); n != 1 {
			t.Errorf("%s: %d programs attached, want the foreign one", name, n)
		}
	}
}

// TestCgroupMadeAgain: pins whose cgroup was removed get new links, and keep what the maps hold.
func TestCgroupMadeAgain(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.Cgroup = filepath.Join(cfg.Cgroup, "node")
	web := datapath.Frontend{Addr: addr("10.96.0.1:80/TCP"), Backends: backends("10.0.0.1:80")}
	for n := range 2 {
		if err := os.Mkdir(cfg.Cgroup, 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			checkInstalled(t, "after the cgroup was made again", l, []datapath.Frontend{web})
		}
		reconcile(t, l, web)
		if n := attached(t, cfg.Cgroup); n != len(layout.Hooks) {
			t.Errorf("%d programs attached, want %d", n, len(layout.Hooks))
		}
		if err := l.SelfTest(t.Context()); !errors.Is(err, ErrOutside) {
			t.Errorf("self-test from outside: %v", err)
		}
		if err := errors.Join(l.Close(), os.Remove(cfg.Cgroup)); err != nil {
			t.Fatal(err)
		}
	}
	if err := CleanUp(cfg); err != nil {
		t.Error(err)
	}
}

func TestSelfTest(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	l := opened(t, cfg)
	web := datapath.Frontend{Addr: addr("10.96.0.1:80/TCP"), Backends: backends("10.0.0.1:80")}
	reconcile(t, l, web)
	for range 3 {
		if err := l.SelfTest(t.Context()); err != nil {
			t.Error(err)
		}
	}
	checkInstalled(t, "after the self-test", l, []datapath.Frontend{web})
	if err := detachAll(filepath.Join(cfg.Pins, layout.LinksDir)); err != nil {
		t.Fatal(err)
	}
	if err := l.SelfTest(t.Context()); err == nil || !strings.Contains(err.Error(), "are not hit") {
		t.Errorf("self-test without hooks: %v", err)
	}
	checkInstalled(t, "after the failed self-test", l, []datapath.Frontend{web})
}

func TestFeatures(t *testing.T) {
	if !inside(t) {
		return
	}
	l := opened(t, config(t))
	for _, f := range l.Features() {
		t.Logf("%-30s %v (since %s)", f.Name, f.OK, f.Since)
		if !f.OK && f.Without == "" {
			t.Errorf("%s is required, and Open succeeded without", f.Name)
		}
	}
	err := required([]datapath.Feature{{Name: "a", Since: "5.8"}, {Name: "b", OK: true}, {Name: "c", Without: "x"}})
	if err == nil || !strings.Contains(err.Error(), "lacks a (since Linux 5.8): strait needs") {
		t.Errorf("required: %v", err)
	}
}

// The way of waiting on machines where membarrier does not.
func TestGraceFallback(t *testing.T) {
	testutil.NeedRoot(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	g, err := newGracePeriod()
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if err := g.outer.Put(uint32(0), g.inner); err != nil {
		t.Error(err)
	}
	if err := g.wait(); err != nil {
		t.Error(err)
	}
}

// TestBpftool: the maps read as named fields without strait.
func TestBpftool(t *testing.T) {
	if !inside(t) {
		return
	}
	bpftool := findBpftool(t)
	l := opened(t, config(t))
	reconcile(t, l, datapath.Frontend{Addr: addr("10.96.0.1:80/TCP"), Backends: backends("10.0.0.1:80", "10.0.0.2:80*3")})
	for name, fields := range map[string][]string{
		"services":      {`"addr"`, `"port"`, `"proto"`, `"index"`},
		"sets":          {`"base"`, `"count"`},
		"backends":      {`"addr"`, `"port"`, `"weight_minus_1"`, `"threshold"`, `"alias"`},
		"sockets":       {`"cookie"`, `"frontend"`, `"backend"`, `"connected"`},
		"address_sieve": {`"ranges"`, `"net"`, `"mask"`},
		"addresses":     {},
	} {
		out, err := exec.CommandContext(t.Context(), bpftool, "map", "dump", "pinned", filepath.Join(l.Pins(), name)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		for _, f := range fields {
			if !bytes.Contains(out, []byte(f)) {
				t.Errorf("%s: no field %s in %.300s", name, f, out)
			}
		}
	}
}

func findBpftool(t testing.TB) string {
	t.Helper()
	for _, p := range []string{"bpftool", "/usr/sbin/bpftool", "/sbin/bpftool"} {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	testutil.Missing(t, "needs bpftool: apt install bpftool")
	return ""
}

// A program is attached for every hook that the object has, and no more.
func TestHooksAreAll(t *testing.T) {
	spec, err := layout.Spec()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range layout.Hooks {
		names = append(names, h.Program)
		if p := spec.Programs[h.Program]; p == nil || p.AttachType != h.Attach {
			t.Errorf("hook %s: program %v", h.Name, p)
		}
	}
	for name := range spec.Programs {
		if !strings.HasPrefix(name, "strait_") || len(name) >= unix.BPF_OBJ_NAME_LEN {
			t.Errorf("program %s: the kernel keeps 15 characters, which must begin with strait_", name)
		}
		if name == layout.ProgForget {
			continue // user space runs it
		}
		if !slices.Contains(names, name) {
			t.Errorf("program %s has no hook", name)
		}
	}
}
