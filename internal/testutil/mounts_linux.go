package testutil

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// PrivateMounts keeps the mounts of a child in a mount namespace of its own (Cloneflags CLONE_NEWNS) from
// reaching others. SysProcAttr's Unshareflags would do it too, but not in a chroot, where / is no mount:
// there each mount that can be seen is made private.
func PrivateMounts() error {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(info)) {
		// proc_pid_mountinfo(5): the fifth field is the mount point, blanks as \040.
		if f := strings.Fields(line); len(f) > 4 {
			point := strings.ReplaceAll(f[4], `\040`, " ")
			if err := unix.Mount("", point, "", unix.MS_PRIVATE, ""); err != nil {
				errs = append(errs, fmt.Errorf("make %s private: %w", point, err))
			}
		}
	}
	return errors.Join(errs...)
}
