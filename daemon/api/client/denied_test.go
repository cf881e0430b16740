//go:build linux

package client

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"strait.io/strait/daemon/api"
)

// TestClientDenied dials as nobody, on a thread of its own.
func TestClientDenied(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs root")
		}
		t.Skip("needs root, to become another user")
	}
	socket := shortDir(t) + "/strait.sock"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			err = errno
			return
		}
		_, err = net.Dial("unix", socket)
	})
	wg.Wait()
	var f *api.Failure
	if !errors.As(dialFailure(t.Context(), socket, err), &f) || f.Reason != api.Denied || !strings.Contains(f.Error(), "as root") {
		t.Errorf("dial gave %v, the client %+v", err, f)
	}
}
