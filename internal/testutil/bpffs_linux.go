package testutil

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// BPFFS mounts a bpffs for this test on a temporary directory and returns its path. It is unmounted
// at the end of the test, which removes the pins in it, so no test leaves one behind.
func BPFFS(t testing.TB) string {
	t.Helper()
	NeedRoot(t)
	dir := t.TempDir() // first: removed last, after the unmount
	if err := unix.Mount("bpffs", dir, "bpf", 0, ""); err != nil {
		Missing(t, "cannot mount a bpffs: "+err.Error())
		return ""
	}
	cleanup(t, func() error {
		// Detached, so that a map that the test still holds open does not cause EBUSY. A test that failed
		// may have left other mounts on top: the last one is gone once there is nothing to unmount (EINVAL).
		for mounts := 0; ; mounts++ {
			if err := unix.Unmount(dir, unix.MNT_DETACH); errors.Is(err, unix.EINVAL) && mounts > 0 {
				return nil
			} else if err != nil {
				return fmt.Errorf("unmount bpffs %s: %w", dir, err)
			}
		}
	})
	return dir
}
