package lab

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/fabric"
)

// maxDir leaves room for a node's socket in the 107 bytes that a unix socket address may have.
const maxDir = 107 - len("/me-central-40/run/strait.sock")

// preflight says in one line each why this machine cannot have a lab.
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

// tunnelPossible checks that either kind of WireGuard device can be made, in a namespace that vanishes
// at once.
func tunnelPossible() error {
	if _, err := os.Stat("/dev/net/tun"); err == nil {
		return nil
	}
	const probe = "strait-core" // a name of ours, so that a crash here leaves nothing unknown
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
		return errors.New("neither kernel WireGuard nor /dev/net/tun is there: " +
			"make the latter with `mkdir -p /dev/net && mknod /dev/net/tun c 10 200`")
	}
	return err
}
