// Package fabric makes what machines in network namespaces are made of: the namespaces, the cables, bridges and
// routes that join them, and cgroups that hold a machine's processes and can be killed whole.
//
// Input are names and addresses; output is kernel state, which the caller removes. Nothing is made in the
// root network namespace. It must not know what runs in its machines.
package fabric

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// NetNSDir is where named network namespaces live (iproute2's convention).
const NetNSDir = "/run/netns"

// Unmount unmounts path, detaching it where it is in use; what is not mounted is no error.
func Unmount(path string) error {
	err := unix.Unmount(path, 0)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.MNT_DETACH)
	}
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}
