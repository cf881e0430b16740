package testutil

import (
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
		// Detached, so that a map that the test still holds open does not cause EBUSY.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount bpffs %s: %w", dir, err)
		}
		return nil
	})
	return dir
}
