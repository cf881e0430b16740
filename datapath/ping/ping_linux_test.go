package ping

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// cable plugs two namespaces together, and returns that of the node that asks.
func cable(t testing.TB) *testutil.Namespace {
	t.Helper()
	testutil.NeedRoot(t)
	if _, err := exec.LookPath("ip"); err != nil {
		testutil.Missing(t, "needs ip: run `make setup` as root")
	}
	here, there := testutil.NetNS(t), testutil.NetNS(t)
	run := func(ns *testutil.Namespace, argv ...string) {
		t.Helper()
		err := ns.Do(func() error {
			if out, err := exec.Command("ip", argv...).CombinedOutput(); err != nil {
				return fmt.Errorf("ip %v: %w: %s", argv, err, out)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	run(here, "link", "add", "tun", "type", "veth", "peer", "name", "tun", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), there.FD()))
	for i, ns := range []*testutil.Namespace{here, there} {
		run(ns, "addr", "add", fmt.Sprintf("10.0.0.%d/24", i+1), "dev", "tun")
		run(ns, "addr", "add", fmt.Sprintf("fd00::%d/64", i+1), "dev", "tun", "nodad")
		run(ns, "link", "set", "lo", "up")
		run(ns, "link", "set", "tun", "up")
	}
	return here
}

// ask sends a request and returns whether the answer came.
func ask(ns *testutil.Namespace, device, from, to string, size int) error {
	var s *Socket
	err := ns.Do(func() (err error) {
		s, err = Open(context.Background(), device, netip.MustParseAddr(from))
		return err
	})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Send(netip.MustParseAddr(to), 42, size); err != nil {
		return err
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	at, id, err := s.Receive()
	if err == nil && (at.String() != to || id != 42) {
		err = fmt.Errorf("%s answers with id %d", at, id)
	}
	return err
}

// The kernel of the other machine answers, in both families and in all sizes that the device takes.
func TestKernelAnswers(t *testing.T) {
	ns := cable(t)
	for _, c := range []struct{ from, to string }{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		// The link needs a moment to find the neighbour.
		testutil.Eventually(t, 10*time.Second, func() error { return ask(ns, "tun", c.from, c.to, 0) })
		for _, size := range []int{84, 1280, 1500} {
			if err := ask(ns, "tun", c.from, c.to, size); err != nil {
				t.Errorf("%s, %d bytes: %v", c.to, size, err)
			}
		}
		if err := ask(ns, "tun", c.from, c.to, 1501); !errors.Is(err, unix.EMSGSIZE) {
			t.Errorf("%s: more than the device takes: %v", c.to, err)
		}
	}
}

// Replies that arrive on another device do not count, and a node without the address can open a
// socket.
func TestOtherDevice(t *testing.T) {
	ns := cable(t)
	if err := ask(ns, "tun", "10.0.0.1", "127.0.0.1", 0); err == nil {
		t.Error("an answer came from loopback")
	}
	if err := ask(ns, "none", "10.0.0.1", "10.0.0.2", 0); !errors.Is(err, unix.ENODEV) {
		t.Errorf("a device that is not there: %v", err)
	}
	err := ns.Do(func() error {
		s, err := Open(context.Background(), "tun", netip.MustParseAddr("10.0.0.77"))
		if err == nil {
			s.Close()
		}
		return err
	})
	if err != nil {
		t.Errorf("an address that the node does not have yet: %v", err)
	}
}

// BenchmarkEcho measures a request and its answer: both machines' kernels and the two system calls,
// without a tunnel.
func BenchmarkEcho(b *testing.B) {
	ns, to := cable(b), netip.MustParseAddr("10.0.0.2")
	testutil.Eventually(b, 10*time.Second, func() error { return ask(ns, "tun", "10.0.0.1", to.String(), 0) })
	var s *Socket
	err := ns.Do(func() (err error) {
		s, err = Open(context.Background(), "tun", netip.MustParseAddr("10.0.0.1"))
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if err := s.Send(to, 42, 0); err != nil {
			b.Fatal(err)
		}
		if _, _, err := s.Receive(); err != nil {
			b.Fatal(err)
		}
	}
}
