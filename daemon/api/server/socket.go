package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// maxSocketPath is the size of sockaddr_un.sun_path minus its final zero byte (unix(7)).
	maxSocketPath = 107
	newSuffix     = ".new"
)

// listenUnix creates the socket at path with mode 0600, replacing one that a dead daemon left. It
// creates the socket next to path and renames it, so that no client can connect before the mode is
// set, and so that path always names a socket. The directory is created with mode 0700 if it does
// not exist. If the socket has a group, that may connect too, and enter the directory, which has nothing else.
func listenUnix(ctx context.Context, path string, group int) (*net.UnixListener, error) {
	if len(path)+len(newSuffix) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: the path is longer than %d bytes; choose a shorter runDir",
			path, maxSocketPath-len(newSuffix))
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the run directory: %w", err)
	}
	if group != 0 {
		if err := lendTo(dir, group, 0o750); err != nil {
			return nil, err
		}
	}
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := checkFree(ctx, path); err != nil {
		return nil, err
	}
	return bindAt(path, group)
}

// lendTo gives a file of root's to a group. Without CAP_CHOWN, the daemon must be a member of that group.
func lendTo(path string, group int, mode fs.FileMode) error {
	if err := os.Chown(path, -1, group); err != nil {
		return fmt.Errorf("give %s to group %d: %w", path, group, err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("let group %d use %s: %w", group, path, err)
	}
	return nil
}

func bindAt(path string, group int) (*net.UnixListener, error) {
	fresh := path + newSuffix
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove an old temporary socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // it would unlink the name from before the rename
	if group == 0 {
		err = os.Chmod(fresh, 0o600)
	} else {
		err = lendTo(fresh, group, 0o660)
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		l.Close()
		return nil, errors.Join(fmt.Errorf("put socket %s in place: %w", path, err), os.Remove(fresh))
	}
	return l, nil
}

// checkFree returns nil if nothing, or only a dead daemon's socket, is at path.
func checkFree(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("stat the old socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket; remove it, or choose another runDir", path)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	who := "a process that does not answer"
	if err == nil {
		defer conn.Close()
		if pid := listenerPID(conn.(*net.UnixConn)); pid > 0 {
			who = fmt.Sprintf("pid %d", pid)
		}
	}
	return fmt.Errorf("another straitd is running (%s) and listens on %s; stop it, or choose another runDir", who, path)
}

// lockDir keeps two daemons that start at once from each taking the other's socket for a dead one.
// It locks the directory itself, so no lock file is left. The lock is held only while the socket
// changes.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the run directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		err := tryLock(d)
		if err == nil {
			return func() { d.Close() }, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			d.Close()
			return nil, fmt.Errorf("lock %s, which another process holds: %w", dir, err)
		}
	}
}

// removeOwn removes the socket at path if it is still mine and not that of a later daemon.
func removeOwn(path string, mine fs.FileInfo) error {
	unlock, err := lockDir(context.Background(), filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	there, err := os.Lstat(path)
	if err != nil || !os.SameFile(mine, there) {
		return nil // gone, or no longer ours
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the socket: %w", err)
	}
	return nil
}
