package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"strait.io/strait/test/kubelab/machine"
)

// mounts mounts the node's own directories in its mount namespace. They are at the usual paths, so
// that programs on the node need the same configuration as on a real machine.
func mounts(m machine.Machine) error {
	// First separate the mounts from the machine's. Then share them again, so that kubelet's mounts
	// can propagate to pods that ask for it.
	for _, flags := range []uintptr{unix.MS_REC | unix.MS_PRIVATE, unix.MS_REC | unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", flags, ""); err != nil {
			return fmt.Errorf("set propagation of /: %w", err)
		}
	}
	if err := dropHeld(); err != nil {
		return err
	}
	for _, t := range []struct{ source, target, kind string }{
		{"proc", "/proc", "proc"},
		{"tmpfs", "/run", "tmpfs"},
		{"bpf", "/sys/fs/bpf", "bpf"},
	} {
		if err := unix.Mount(t.source, t.target, t.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", t.kind, t.target, err)
		}
	}
	for source, target := range map[string]string{
		filepath.Join(m.Root, "lib"): "/var/lib",
		filepath.Join(m.Root, "log"): "/var/log",
		m.Cgroup:                     m.CgroupAt,
	} {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s to %s: %w", source, target, err)
		}
	}
	return nil
}

// dropHeld unmounts named network namespaces and BPF file systems that this mount namespace
// inherited. As long as one is mounted anywhere, the network namespace with its cables, or the
// pinned programs, stay alive after their owner has removed them.
func dropHeld() error {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	for line := range strings.Lines(string(info)) {
		mount, source, _ := strings.Cut(line, " - ")
		f := strings.Fields(mount)
		if len(f) < 5 || !strings.HasPrefix(source, "nsfs ") && !strings.HasPrefix(source, "bpf ") {
			continue
		}
		// A mount below another that was just unmounted is gone already.
		if err := unix.Unmount(f[4], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", f[4], err)
		}
	}
	return nil
}
