package server

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/fake"
	"strait.io/strait/internal/testutil"
)

// dialAs connects to a socket as a user and group, on a thread of its own.
func dialAs(user, group uintptr, socket string) (err error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for _, id := range []struct{ call, to uintptr }{{syscall.SYS_SETRESGID, group}, {syscall.SYS_SETRESUID, user}} {
			if _, _, errno := syscall.RawSyscall(id.call, id.to, id.to, id.to); errno != 0 {
				err = errno
				return
			}
		}
		var conn net.Conn
		if conn, err = net.Dial("unix", socket); err == nil {
			conn.Close()
		}
	})
	wg.Wait()
	return err
}

// TestView: a group can ask on a socket of its own, and no other user. The main socket stays root's alone. The
// view comes back if another program removes it, and is gone when the server is.
func TestView(t *testing.T) {
	testutil.NeedRoot(t)
	const group = 4321
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := New(Config{Socket: socketIn(dir), View: filepath.Join(dir, "view", "strait.sock"), ViewGroup: group}, fake.NewSource(fake.Sample()))
	if err := os.Mkdir(filepath.Dir(s.cfg.View), 0o755); err != nil { // as the kubelet makes it
		t.Fatal(err)
	}
	stop := start(t, s)
	answers := func() bool {
		status, err := client.OnSocket(s.cfg.View).Status(t.Context())
		return err == nil && status.Node == "n1"
	}
	waitFor(t, "the view", answers)
	for _, c := range []struct {
		user, group uintptr
		socket      string
		may         bool
	}{
		{65534, group, s.cfg.View, true}, {65534, 65534, s.cfg.View, false},
		{65534, group, s.cfg.Socket, false}, {0, 0, s.cfg.Socket, true},
	} {
		if err := dialAs(c.user, c.group, c.socket); (err == nil) != c.may {
			t.Errorf("user %d of group %d at %s: %v", c.user, c.group, c.socket, err)
		}
	}
	if info, err := os.Stat(filepath.Dir(s.cfg.View)); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("its directory: %v, %v", info, err)
	}
	if err := os.Remove(s.cfg.View); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a new socket", answers)
	stop()
	if _, err := os.Lstat(s.cfg.View); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

// TestViewIsNoCondition: where the view's socket cannot be made, the server works without it.
func TestViewIsNoCondition(t *testing.T) {
	dir := shortDir(t)
	s := New(Config{Socket: socketIn(dir), View: filepath.Join(dir, "view", "strait.sock"), ViewGroup: 4321}, fake.NewSource(fake.Sample()))
	if err := os.WriteFile(filepath.Dir(s.cfg.View), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, s)
	if status, err := client.OnSocket(s.cfg.Socket).Status(t.Context()); err != nil || status.Node != "n1" {
		t.Errorf("the daemon answers %+v, %v", status, err)
	}
}
