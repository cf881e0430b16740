package testutil

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// PrivateMounts keeps the mounts of a child in its own mount namespace (Cloneflags CLONE_NEWNS)
// from propagating to others. SysProcAttr's Unshareflags would do so too, but not in a chroot,
// where / is not a mount point: there PrivateMounts makes each visible mount private.
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
		// proc_pid_mountinfo(5): the fifth field is the mount point, with blanks as \040.
		if f := strings.Fields(line); len(f) > 4 {
			point := strings.ReplaceAll(f[4], `\040`, " ")
			if err := unix.Mount("", point, "", unix.MS_PRIVATE, ""); err != nil {
				errs = append(errs, fmt.Errorf("make %s private: %w", point, err))
			}
		}
	}
	return errors.Join(errs...)
}
