package socklb

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/socklb/layout"
)

// forward is the number of hooks that choose a backend: connect and sendmsg, of two IP families.
const forward = 4

// goBehind puts our programs behind those of others, as on a kernel that cannot attach in front of
// them.
func goBehind(t *testing.T, l *LB, cfg Config) {
	t.Helper()
	if !has(l.features, featureFirst) {
		return // they are
	}
	reload(t, l, cfg, featureFirst)
	if err := detachAll(filepath.Join(cfg.Pins, layout.LinksDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Mend(); err != nil {
		t.Fatal(err)
	}
}

// moveInto moves this process, and so the sockets that it opens, into a cgroup until the test ends.
func moveInto(t *testing.T, path string) {
	t.Helper()
	move := func(path string) error { return os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte("0"), 0) }
	if err := move(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := move(filepath.Dir(path)); err != nil {
			t.Error(err)
		}
	})
}

// child makes a cgroup below another one, until the test ends.
func child(t *testing.T, of, name string) string {
	t.Helper()
	path := filepath.Join(of, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return path
}

// TestBelow: where a rival is in front of us, as on kernels without places, our frontends lead to
// our pods from every cgroup below the served one: those that are there, those that come, after a
// restart, and when something detaches our links. When the rival goes, so do the links below.
func TestBelow(t *testing.T) {
	if !inside(t) {
		return
	}
	c := newContest(t)
	pods := child(t, c.cfg.Cgroup, "pods")
	c.enter(t)
	l := opened(t, c.cfg)
	goBehind(t, l, c.cfg)
	reconcile(t, l, c.ours...)
	mends := func(want int) {
		t.Helper()
		if changed, err := l.Mend(); err != nil || len(changed) != want {
			t.Errorf("mended %v, %v; want %d", changed, err, want)
		}
	}
	links := func(want int) {
		t.Helper()
		if names, err := belowPins(filepath.Join(c.cfg.Pins, layout.LinksDir)); err != nil || len(names) != want {
			t.Errorf("links below: %v, %v; want %d", names, err, want)
		}
	}
	links(forward)
	moveInto(t, pods)
	c.check(t, "there")
	checkTop(t, l)

	later := child(t, c.cfg.Cgroup, "later")
	mends(0)
	links(2 * forward)
	moveInto(t, later)
	c.check(t, "later")
	moveInto(t, pods)
	if err := os.Remove(later); err != nil {
		t.Fatal(err)
	}
	mends(0)
	links(forward)

	names, err := belowPins(filepath.Join(c.cfg.Pins, layout.LinksDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := l.objects.links[name].Detach(); err != nil {
			t.Fatal(err)
		}
	}
	mends(forward)
	c.check(t, "detached")
	for _, name := range names {
		if err := os.Remove(filepath.Join(c.cfg.Pins, layout.LinksDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	mends(forward)
	links(forward)
	reload(t, l, c.cfg, featureFirst)
	links(forward)
	c.check(t, "opened again")

	c.leave(t)
	mends(0)
	links(0)
	c.check(t, "alone")
	if found, err := inspect.Foreign(l.Pins(), l.Cgroup()); err != nil || len(found) > 0 {
		t.Errorf("foreign programs %v, %v", found, err)
	}
}

// TestBelowIsCleanedUp: what removes the balancer also detaches it below the served cgroup, while
// the rival is still there.
func TestBelowIsCleanedUp(t *testing.T) {
	if !inside(t) {
		return
	}
	c := newContest(t)
	pods := child(t, c.cfg.Cgroup, "pods")
	c.enter(t)
	l := opened(t, c.cfg)
	goBehind(t, l, c.cfg)
	if n := attached(t, pods); n != forward {
		t.Errorf("%d programs below, want %d", n, forward)
	}
	if err := errors.Join(l.Close(), CleanUp(c.cfg)); err != nil {
		t.Fatal(err)
	}
	if n := attached(t, pods); n != 0 {
		t.Errorf("%d programs are left below", n)
	}
}

// checkTop checks that the rival is in front of us only at the top.
func checkTop(t *testing.T, l *LB) {
	t.Helper()
	found, err := inspect.Foreign(l.Pins(), l.Cgroup())
	if err != nil || len(found) != len(layout.Hooks)-1 {
		t.Errorf("foreign programs %v, %v", found, err)
	}
	for _, f := range found {
		if f.Decides() || f.Chooses() != (f.Order == datapath.Top) {
			t.Errorf("%+v", f)
		}
	}
}

// detachAsCilium does what the agent of Cilium 1.19.4 does with its socket load balancer off
// (detachAll of pkg/socketlb): it detaches all programs of the cgroup, and gives up at the first
// error.
func detachAsCilium(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, h := range layout.Hooks {
		all, err := inspect.Attached(h, path, 0)
		if err != nil {
			return err
		}
		for _, id := range all {
			p, err := ebpf.NewProgramFromID(id)
			if err != nil {
				return err
			}
			err = link.RawDetachProgram(link.RawDetachProgramOptions{Target: int(f.Fd()), Program: p, Attach: h.Attach})
			if err = errors.Join(err, p.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestBelowRoot: with BelowRoot there is nothing of ours on the served cgroup, where another
// program may detach all that it finds, and calls from the cgroups below are served; also after the
// setting has changed, one way and the other, and beside a rival.
func TestBelowRoot(t *testing.T) {
	if !inside(t) {
		return
	}
	c := newContest(t)
	pods := child(t, c.cfg.Cgroup, "pods")
	moveInto(t, pods)
	open := func(below bool, when string) *LB {
		t.Helper()
		c.cfg.BelowRoot = below
		l, err := Open(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		reconcile(t, l, c.ours...)
		root, under := len(layout.Hooks), 0
		if below {
			root, under = under, root
		}
		if r, u := attached(t, c.cfg.Cgroup), attached(t, pods); r != root || u != under {
			t.Errorf("%s: %d programs on the cgroup, want %d; %d below, want %d", when, r, root, u, under)
		}
		if err := detachAsCilium(c.cfg.Cgroup); (err == nil) != below || err != nil && !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: Cilium's agent gets %v", when, err)
		}
		c.check(t, when)
		return l
	}
	closes := func(l *LB) {
		t.Helper()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := CleanUp(c.cfg); err != nil {
			t.Error(err)
		}
	})
	closes(open(true, "new"))
	closes(open(true, "opened again"))
	closes(open(false, "to the root"))
	l := open(true, "back below")
	defer closes(l)
	later := child(t, c.cfg.Cgroup, "later")
	if changed, err := l.Mend(); err != nil || len(changed) > 0 || attached(t, later) != len(layout.Hooks) {
		t.Errorf("mended %v, %v; %d programs on the new cgroup", changed, err, attached(t, later))
	}
	c.enter(t)
	c.check(t, "beside a rival")
	found, err := inspect.Foreign(l.Pins(), l.Cgroup())
	if err != nil || len(datapath.Ahead(found)) > 0 || len(found) != len(layout.Hooks)-1 {
		t.Errorf("foreign programs %v, %v", found, err)
	}
	if changed, err := l.Mend(); err != nil || len(changed) > 0 {
		t.Errorf("mended %v, %v", changed, err)
	}
}
