package testutil

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"strait.io/strait/internal/notify"
)

// Namespace is an unnamed network namespace, which disappears with its last user.
type Namespace struct {
	handle netns.NsHandle
}

// NetNS enters a new network namespace, with lo up, until the test ends. Only the test's own
// goroutine is in it, on a locked thread. Goroutines that it starts are not, and must use Do.
// Sockets stay in the namespace in which they were opened.
func NetNS(t testing.TB) *Namespace {
	t.Helper()
	NeedRoot(t)
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		t.Fatalf("open network namespace: %v", err)
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatalf("make network namespace: %v", err)
	}
	t.Cleanup(func() {
		// If moving back fails, the thread stays locked: it ends with this goroutine and is not
		// reused.
		if err := netns.Set(home); err != nil {
			t.Errorf("leave network namespace: %v", err)
		} else {
			runtime.UnlockOSThread()
		}
		_ = home.Close() // a descriptor opened for reading: closing it loses nothing
		_ = ns.Close()
	})
	if err := LoopbackUp(); err != nil {
		t.Fatalf("prepare network namespace: %v", err)
	}
	reservePort(t)
	return &Namespace{ns}
}

// reservePort keeps WireGuard's default port from sockets that ask for any port, in the calling
// thread's network namespace: it lies in the ephemeral range.
func reservePort(t testing.TB) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_reserved_ports", []byte("51820"), 0); err != nil {
		t.Fatalf("reserve WireGuard's port: %v", err)
	}
}

// FD returns the namespace as a file descriptor, for netlink calls that take one.
func (n *Namespace) FD() int { return int(n.handle) }

// Do runs fn inside the namespace, on a thread of its own, and waits for it.
func (n *Namespace) Do(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here, still in the namespace
		if err := netns.Set(n.handle); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- fn()
	}()
	return <-done
}

// Watch runs a watcher of the kernel inside the namespace until the test ends, and returns the
// signals that it sends. Watch itself receives the first signal, which says that the watcher is
// listening.
func (n *Namespace) Watch(t testing.TB, watch func(context.Context, notify.Signal) error) <-chan struct{} {
	t.Helper()
	changed := notify.New()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Do(func() error { return watch(ctx, changed) }) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("watch: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the watcher does not end")
		}
	})
	if !Signalled(changed, 5*time.Second) {
		t.Fatal("the watcher does not say that it is listening")
	}
	return changed
}

// LoopbackUp sets lo up in the calling thread's network namespace.
func LoopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}
