// Package fabric makes the parts of machines that live in network namespaces: the namespaces, the
// cables, bridges and routes that join them, and cgroups that hold a machine's processes and can be
// killed as a whole.
//
// Input is names and addresses; output is kernel state, which the caller removes. It makes nothing
// in the root network namespace. It must not know what runs in its machines.
package fabric

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// NetNSDir is where named network namespaces are (iproute2's convention).
const NetNSDir = "/run/netns"

// Unmount unmounts path, and detaches it if it is in use. It succeeds if nothing is mounted there.
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
