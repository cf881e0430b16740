package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const resolvConf = "/etc/resolv.conf"

// resolvText returns the resolv.conf for a node's processes.
func resolvText(servers []netip.Addr) string {
	var b strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	b.WriteString("options timeout:1 attempts:2\n")
	return b.String()
}

// Enter gives this process its own mount namespace in which /etc/resolv.conf is the given file,
// then executes the command in its place. It returns only on error. The process keeps its network
// namespace and cgroup.
func Enter(resolv string, argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("find command: %w", err)
	}
	runtime.LockOSThread() // only this thread has the mount namespace, until exec ends all others
	if err := hide(resolv); err != nil {
		return err
	}
	if err := unix.Exec(path, argv, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}

// hide gives this thread a mount namespace in which /etc/resolv.conf is the given file.
func hide(resolv string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make mount namespace: %w", err)
	}
	if err := privateMounts(); err != nil {
		return err
	}
	return coverResolv(resolv)
}

// privateMounts stops mounts in this mount namespace from propagating to any other.
func privateMounts() error {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if errors.Is(err, unix.EINVAL) {
		err = privateFromChroot()
	}
	if err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

// privateFromChroot is privateMounts in a chroot whose / is not a mount point: the mount that holds
// it is further up. A process can walk up to it with ".." once its working directory is outside its
// root.
func privateFromChroot() error {
	root, err := unix.Open("/", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	cwd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(cwd)
	if err := unix.Chroot("/proc"); err != nil {
		return err
	}
	if err := unix.Fchdir(root); err != nil {
		return err
	}
	for range 64 {
		if err := unix.Chdir(".."); err != nil {
			return err
		}
	}
	err = unix.Mount("", ".", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if back := errors.Join(unix.Fchdir(root), unix.Chroot("."), unix.Fchdir(cwd)); back != nil {
		return fmt.Errorf("return to the chroot: %w", back)
	}
	return err
}

// coverResolv mounts file over /etc/resolv.conf. If that file does not exist or is a dangling
// symbolic link, it covers all of /etc with symbolic links to its entries, plus the new
// resolv.conf.
func coverResolv(file string) error {
	err := unix.Mount(file, resolvConf, "", unix.MS_BIND, "")
	if errors.Is(err, unix.ENOENT) {
		return coverEtc(file)
	}
	if err != nil {
		return fmt.Errorf("mount %s over %s: %w", file, resolvConf, err)
	}
	return nil
}

func coverEtc(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read resolv.conf of the node: %w", err)
	}
	etc, err := unix.Open("/etc", unix.O_PATH|unix.O_DIRECTORY, 0) // left open: the links need it
	if err != nil {
		return fmt.Errorf("open /etc: %w", err)
	}
	old := fmt.Sprintf("/proc/self/fd/%d", etc)
	entries, err := os.ReadDir(old)
	if err != nil {
		return fmt.Errorf("list /etc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/etc", "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Errorf("cover /etc: %w", err)
	}
	for _, e := range entries {
		if e.Name() == filepath.Base(resolvConf) {
			continue
		}
		if err := os.Symlink(filepath.Join(old, e.Name()), filepath.Join("/etc", e.Name())); err != nil {
			return fmt.Errorf("cover /etc: %w", err)
		}
	}
	if err := os.WriteFile(resolvConf, text, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", resolvConf, err)
	}
	return nil
}
