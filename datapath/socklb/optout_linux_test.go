package socklb

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/cgroup"
	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/datapath/socklb/optout"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// in runs fn on a thread that belongs to a cgroup below ours. The cgroup must be threaded: see subtree.
func in(t testing.TB, cgroup string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends here, and leaves the cgroup
		if err := os.WriteFile(filepath.Join(cgroup, "cgroup.threads"), fmt.Append(nil, unix.Gettid()), 0); err != nil {
			t.Error(err)
			return
		}
		fn()
	}()
	<-done
}

// subtree makes cgroups below ours, in which single threads may be.
func subtree(t testing.TB, rel string) string {
	t.Helper()
	at := testutil.InsideCgroup()
	for _, name := range strings.Split(rel, "/") {
		at = filepath.Join(at, name)
		if err := os.Mkdir(at, 0o755); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "cgroup.type"), []byte("threaded"), 0); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// TestOptOut: new sockets of a cgroup that opted out, and of those below it, are left alone; all others, and
// what such a socket had before, are served.
func TestOptOut(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	l := opened(t, cfg)
	pod, inner, other := subtree(t, "pod"), subtree(t, "pod/container/x"), subtree(t, "other")
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { testOptOut(t, l, f, pod, inner, other) })
	}
}

// served reports whether new sockets of the calling thread are translated, by each hook.
func served(t testing.TB, f family, vip netip.AddrPort) bool {
	t.Helper()
	c, u := newClient(t, f, unix.SOCK_DGRAM), newClient(t, f, unix.SOCK_DGRAM)
	defer c.close()
	defer u.close()
	connect, send := c.connect(vip), u.send(vip)
	if (connect == nil) != (send == nil) {
		t.Errorf("connect: %v, sendto: %v", connect, send)
	}
	for _, err := range []error{connect, send} {
		if err != nil && !errors.Is(err, unix.ENETUNREACH) {
			t.Error(err)
		}
	}
	return connect == nil
}

func testOptOut(t *testing.T, l *LB, f family, pod, inner, other string) {
	vip, empty := netip.AddrPortFrom(f.vip, 80), netip.AddrPortFrom(f.vip, 81)
	backend := serve(t, l4.UDP, netip.AddrPortFrom(f.pod, 0))
	reconcile(t, l, datapath.Frontend{Addr: l4.New(f.vip, 80, l4.UDP), Backends: one(backend)}, datapath.Frontend{Addr: l4.New(f.vip, 81, l4.UDP)})
	check := func(when string, want map[string]bool) {
		t.Helper()
		for cgroup, want := range want {
			in(t, cgroup, func() {
				if got := served(t, f, vip); got != want {
					t.Errorf("%s: %s is served: %v, want %v", when, filepath.Base(cgroup), got, want)
				}
			})
		}
	}
	old := newClient(t, f, unix.SOCK_DGRAM)
	defer old.close()
	in(t, inner, func() {
		if err := old.send(vip); err != nil {
			t.Error(err)
		}
	})
	check("before", map[string]bool{pod: true, inner: true, other: true})
	if err := l.SetOptOut([]string{pod}); err != nil {
		t.Fatal(err)
	}
	check("opted out", map[string]bool{pod: false, inner: false, other: true})
	in(t, inner, func() {
		if err := newClient(t, f, unix.SOCK_DGRAM).connect(empty); !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("opted out, frontend without backends: %v", err)
		}
		if err := old.send(vip); err != nil {
			t.Errorf("a socket from before: %v", err)
		}
	})
	if err := errors.Join(l.SetOptOut([]string{other}), optout.Add(l.Pins(), inner)); err != nil {
		t.Fatal(err)
	}
	check("another set, and an operator's", map[string]bool{pod: true, inner: false, other: false})
	got, err := optout.List(l.Pins())
	if want := []string{other, inner}; err != nil || !slices.Equal(got, want) {
		t.Errorf("listed %q, %v; want %q", got, err, want)
	}
	if err := l.SetOptOut(nil); err != nil {
		t.Fatal(err)
	}
	check("the daemon's are gone", map[string]bool{inner: false, other: true})
	if err := optout.Remove(l.Pins(), inner); err != nil {
		t.Fatal(err)
	}
	check("all are gone", map[string]bool{pod: true, inner: true, other: true})
	var sieve layout.OptOutSieve
	if err := l.maps.OptoutLevels.Lookup(uint32(0), &sieve); err != nil || sieve != (layout.OptOutSieve{}) {
		t.Errorf("sieve %b, %v", sieve, err)
	}
}

// TestOptOutErrors: each names the cgroup and what to do, and does not hold up the others.
func TestOptOutErrors(t *testing.T) {
	if !inside(t) {
		return
	}
	cfg := config(t)
	cfg.MaxOptOuts = 2
	l := opened(t, cfg)
	a, b, c := subtree(t, "a"), subtree(t, "b"), subtree(t, "c")
	mount, err := cgroup.Mount()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		got  error
		want string
	}{
		{l.SetOptOut([]string{"/nonexistent", a}), "opt out cgroup /nonexistent: no such file or directory; name an existing"},
		{optout.Add(cfg.Pins, t.TempDir()), "is not cgroup v2"},
		{optout.Add(cfg.Pins, mount), "is the root: that would opt out every process"},
		{optout.Remove(cfg.Pins, b), "has not opted out"},
		{optout.Remove(cfg.Pins, a), "was opted out by the daemon"},
		{optout.Add(cfg.Pins+"x", a), "no such file"},
		{l.SetOptOut([]string{a, b, c}), "map optouts holds 2 cgroups and takes no more; raise maxOptOuts"},
	} {
		if tt.got == nil || !strings.Contains(tt.got.Error(), tt.want) {
			t.Errorf("got %v, want %q", tt.got, tt.want)
		}
	}
	if got, err := optout.List(cfg.Pins); err != nil || len(got) != 2 {
		t.Errorf("listed %q, %v", got, err)
	}
	// One that is gone frees its name, and its room is free for another.
	if err := errors.Join(l.SetOptOut([]string{a, b}), os.Remove(b)); err != nil {
		t.Fatal(err)
	}
	if got, err := optout.List(cfg.Pins); err != nil || !slices.Equal(got, []string{a}) {
		t.Errorf("listed %q, %v", got, err)
	}
	if err := optout.Add(cfg.Pins, c); err != nil {
		t.Error(err)
	}
	if got, err := optout.List(cfg.Pins); err != nil || !slices.Equal(got, []string{a, c}) {
		t.Errorf("listed %q, %v", got, err)
	}
}
