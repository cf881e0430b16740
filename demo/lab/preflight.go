package lab

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/fabric"
)

// maxDir leaves room for the path of a node's socket: a unix socket address has at most 107 bytes.
const maxDir = 107 - len("/me-central-40/run/strait.sock")

// preflight returns the first reason why this machine cannot have a lab in dir, as one line.
func preflight(dir string) error {
	if os.Geteuid() != 0 {
		return errors.New("the demo makes network namespaces and loads eBPF programs: run it as root")
	}
	if len(dir) > maxDir {
		return fmt.Errorf("--dir %s is too long for the sockets in it (%d bytes, at most %d): choose a shorter one", dir, len(dir), maxDir)
	}
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("open own network namespace: %w; mount /proc", err)
	}
	return home.Close()
}

// tunnelPossible checks that a WireGuard device can be made: a userspace one needs /dev/net/tun, a
// kernel one is tried in a namespace that is removed at once.
func tunnelPossible() error {
	if _, err := os.Stat("/dev/net/tun"); err == nil {
		return nil
	}
	const probe = "strait-core" // RemoveByName cleans up after a crash here
	if err := fabric.AddNS(probe); err != nil {
		return fmt.Errorf("%w; the demo needs permission to make network namespaces", err)
	}
	err := fabric.WithHandle(probe, func(h *netlink.Handle) error {
		return h.LinkAdd(&netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: "probe"}})
	})
	if cleanup := fabric.RemoveNS(probe); cleanup != nil {
		return cleanup
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return errors.New("this machine has neither kernel WireGuard nor /dev/net/tun: " +
			"create the latter with `mkdir -p /dev/net && mknod /dev/net/tun c 10 200`")
	}
	return err
}
