package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/fabric"
)

// wireguardDir is where userspace WireGuard devices have their control sockets.
const wireguardDir = "/var/run/wireguard"

// TearDown removes everything that the lab made: processes, mounts, namespaces, cgroups, sockets,
// and finally the directory. If anything before the directory fails, it removes the rest, keeps the
// directory and returns all errors.
func (l *Lab) TearDown(ctx context.Context) error { return l.tearDown(ctx, false) }

// TearDownKeepLogs is like TearDown, but keeps the *.log files in the directory.
func (l *Lab) TearDownKeepLogs(ctx context.Context) error { return l.tearDown(ctx, true) }

func (l *Lab) tearDown(ctx context.Context, keepLogs bool) error {
	if !l.state.Down {
		if err := l.dismantle(ctx); err != nil {
			return err
		}
	}
	if keepLogs {
		l.state.Down, l.state.Kept = true, false
		return errors.Join(keepOnlyLogs(l.Dir), l.state.save(l.Dir))
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		return fmt.Errorf("remove directory of the demo: %w", err)
	}
	return nil
}

// dismantle removes everything but the directory.
func (l *Lab) dismantle(ctx context.Context) error {
	if l.lock == nil {
		lock, err := lockDir(l.state.Cgroup)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		l.lock = lock
	}
	errs := []error{fabric.KillCgroup(ctx, l.state.Cgroup)}
	bury()
	errs = append(errs, fabric.Unmount(filepath.Join(l.Dir, "bpf")))
	for _, ns := range l.namespaces() {
		errs = append(errs, fabric.RemoveNS(ns))
	}
	errs = append(errs, fabric.RemoveCgroup(l.state.Cgroup))
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
		l.lock = nil
	}
	errs = append(errs, l.releaseCgroupMount())
	for _, n := range l.Nodes() {
		errs = append(errs, removeSocket(n.Device))
	}
	for _, d := range l.state.MadeDirs {
		_ = os.Remove(d) // fails if it is not empty: other programs can be using it by now
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("tear down the demo: %w; run `strait demo down` to try again", err)
	}
	return nil
}

// releaseCgroupMount unmounts cgroup v2 if the lab mounted it.
func (l *Lab) releaseCgroupMount() error {
	if l.state.CgroupMount == "" {
		return nil
	}
	return fabric.Unmount(l.state.CgroupMount)
}

// RemoveByName removes what labs left on the machine, found by name alone. It is for when the state
// file in dir is gone. It returns how many network namespaces it removed. In dir it only unmounts
// bpf; files stay.
func RemoveByName(ctx context.Context, dir string) (int, error) {
	var errs []error
	info, err := os.ReadFile("/proc/self/mountinfo")
	errs = append(errs, err)
	if mount := fabric.FindCgroup2(string(info)); mount != "" {
		cgroup := filepath.Join(mount, cgroupName)
		lock, err := lockDir(cgroup)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		errs = append(errs, fabric.KillCgroup(ctx, cgroup), fabric.RemoveCgroup(cgroup))
		if lock != nil {
			errs = append(errs, lock.Close())
		}
	}
	names := leftovers()
	for _, ns := range names {
		errs = append(errs, fabric.RemoveNS(ns))
	}
	errs = append(errs, fabric.Unmount(filepath.Join(dir, "bpf")), removeStaleSockets())
	for _, d := range []string{fabric.NetNSDir, wireguardDir} {
		_ = os.Remove(d) // fails if it is not empty; programs that need it create it again
	}
	return len(names), errors.Join(errs...)
}

// removeStaleSockets removes the control sockets of the lab's WireGuard devices on which no process
// listens any more.
func removeStaleSockets() error {
	paths, err := filepath.Glob(filepath.Join(wireguardDir, "strait[1-9]*.sock"))
	if err != nil {
		return fmt.Errorf("find WireGuard sockets: %w", err)
	}
	for _, path := range paths {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
		} else if errors.Is(err, unix.ECONNREFUSED) {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove WireGuard socket: %w", err)
			}
		}
	}
	return nil
}

func removeSocket(device string) error {
	err := os.Remove(filepath.Join(wireguardDir, device+".sock"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove WireGuard socket: %w", err)
	}
	return nil
}

// keepOnlyLogs removes every file below dir except *.log, and every directory that is empty
// afterwards.
func keepOnlyLogs(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			dirs = append(dirs, path)
			return err
		}
		if strings.HasSuffix(path, ".log") {
			return nil
		}
		return os.Remove(path)
	})
	if err != nil {
		return fmt.Errorf("remove all but logs: %w", err)
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = os.Remove(dirs[i]) // fails for those with logs, which stay
	}
	return nil
}
