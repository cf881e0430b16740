package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/fake"
)

func TestSocketIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := shortDir(t)
	s := New(Config{Socket: socketIn(dir)}, fake.NewSource(fake.Sample()))
	stop := start(t, s)
	for path, want := range map[string]fs.FileMode{s.cfg.Socket: fs.ModeSocket | 0o600, dir + "/run": fs.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode(), want, err)
		}
	}
	stop()
	if left, err := os.ReadDir(dir + "/run"); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestLiveSocketIsNotTaken(t *testing.T) {
	first := New(Config{Socket: socketIn(shortDir(t))}, fake.NewSource(fake.Sample()))
	start(t, first)
	err := New(first.cfg, fake.NewSource(fake.Sample())).Run(t.Context())
	if want := fmt.Sprintf("another straitd is running (pid %d)", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, err := client.OnSocket(first.cfg.Socket).Status(t.Context()); err != nil {
		t.Errorf("the first server does not answer any more: %v", err)
	}
}

func TestDeadSocketIsReplaced(t *testing.T) {
	dir := shortDir(t)
	path := dir + "/strait.sock"
	for _, name := range []string{path, path + newSuffix} { // the latter as a crash between bind and rename leaves it
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	var f *api.Failure
	if _, err := client.OnSocket(path).Status(t.Context()); !errors.As(err, &f) || f.Reason != api.Refused {
		t.Errorf("before: %v", err)
	}
	start(t, New(Config{Socket: path}, fake.NewSource(fake.Sample())))
	if _, err := client.OnSocket(path).Status(t.Context()); err != nil {
		t.Errorf("after: %v", err)
	}
}

func TestSocketErrorsSayWhatToDo(t *testing.T) {
	dir := shortDir(t)
	if err := os.WriteFile(dir+"/file", []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, message := range map[string]string{
		dir + "/file":                       "is not a socket; remove it",
		dir + strings.Repeat("/long", 30):   "choose a shorter runDir",
		dir + "/file/below/a-file/its.sock": "create the run directory",
	} {
		err := New(Config{Socket: path}, fake.NewSource(nil)).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want %q", path, err, message)
		}
	}
	if b, _ := os.ReadFile(dir + "/file"); string(b) != "precious" {
		t.Error("the file was touched")
	}
}

// TestOneOfManyWins: of servers that start at once over a dead socket, one gets it and the rest say
// so.
func TestOneOfManyWins(t *testing.T) {
	dir := shortDir(t)
	for round := range 20 {
		path := fmt.Sprintf("%s/%d.sock", dir, round)
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		dead.Close()
		raceFor(t, path, 16)
	}
}

func raceFor(t *testing.T, path string, servers int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs, begin := make(chan error, servers), make(chan struct{})
	for range servers {
		go func() {
			<-begin
			errs <- New(Config{Socket: path}, fake.NewSource(fake.Sample())).Run(ctx)
		}()
	}
	close(begin)
	for range servers - 1 {
		select {
		case err := <-errs:
			if err == nil || !strings.Contains(err.Error(), "another straitd is running") {
				t.Fatalf("a loser got %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("two servers think that they have the socket")
		}
	}
	if _, err := client.OnSocket(path).Status(ctx); err != nil {
		t.Errorf("the winner does not answer: %v", err)
	}
	cancel()
	if err := <-errs; err != nil {
		t.Errorf("the winner got %v", err)
	}
}

// TestListenIsEnough: the socket is taken before Run, so a second daemon finds out before it does
// anything.
func TestListenIsEnough(t *testing.T) {
	s := New(Config{Socket: socketIn(shortDir(t))}, fake.NewSource(fake.Sample()))
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := New(s.cfg, fake.NewSource(nil)).Listen(t.Context()); err == nil || !strings.Contains(err.Error(), "another straitd is running") {
		t.Errorf("the second got %v", err)
	}
	start(t, s)
}

// TestStopLeavesASuccessorsSocket: a server that stops late removes only its own socket.
func TestStopLeavesASuccessorsSocket(t *testing.T) {
	s := New(Config{Socket: socketIn(shortDir(t))}, fake.NewSource(fake.Sample()))
	stop := start(t, s)
	if err := os.Remove(s.cfg.Socket); err != nil {
		t.Fatal(err)
	}
	start(t, New(s.cfg, fake.NewSource(fake.Sample())))
	stop()
	if _, err := client.OnSocket(s.cfg.Socket).Status(t.Context()); err != nil {
		t.Errorf("the successor lost its socket: %v", err)
	}
}
