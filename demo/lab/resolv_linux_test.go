package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// In a chroot the root is no mount point, and what is mounted there must still not reach the machine:
// not even where its mounts are shared, as systemd makes them.
func TestHideInChroot(t *testing.T) {
	testutil.NeedRoot(t)
	for _, c := range []struct{ name, resolv, outside string }{
		{"over a file", "nameserver 192.0.2.1\n", "nameserver 192.0.2.1\n"},
		{"where there is none", "", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range []string{"proc", "etc"} {
				if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write("new", "nameserver 10.9.9.9\n")
			write("etc/hosts", "127.0.0.1 x\n")
			if c.resolv != "" {
				write("etc/resolv.conf", c.resolv)
			}
			out, err := exec.Command(os.Args[0], "chroot", root).CombinedOutput()
			want := fmt.Sprintf("%q %q %q\n", "nameserver 10.9.9.9\n", "127.0.0.1 x\n", c.outside)
			if err != nil || string(out) != want {
				t.Errorf("inside, hosts, outside = %s (%v); want %s", out, err, want)
			}
		})
	}
}

// inChroot is the child of TestHideInChroot: it prints what resolv.conf and hosts are inside, and what
// resolv.conf is in the mount namespace that it came from.
func inChroot(root string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	for _, flag := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		// Where the tests themselves run in a chroot, / is no mount whose propagation could be set.
		if err := unix.Mount("", "/", "", unix.MS_REC|flag, ""); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return err
	}
	outside, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Chroot(root), unix.Chdir("/")); err != nil {
		return err
	}
	if err := hide("/new"); err != nil {
		return err
	}
	resolv, err := os.ReadFile(resolvConf)
	if err != nil {
		return err
	}
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return err
	}
	there := []byte("none")
	if fd, err := unix.Openat(outside, "etc/resolv.conf", unix.O_RDONLY, 0); err == nil {
		there = make([]byte, 4096)
		n, err := unix.Read(fd, there)
		if err != nil {
			return err
		}
		there = there[:n]
	}
	fmt.Printf("%q %q %q\n", resolv, hosts, there)
	return nil
}
