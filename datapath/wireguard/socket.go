package wireguard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// socketDir is fixed in both wireguard-go and wgctrl.
const socketDir = "/var/run/wireguard"

func socketPath(device string) string { return filepath.Join(socketDir, device+".sock") }

// owner returns the pid of the process that serves the device's socket, as the kernel reports it: a
// process name or a pid file can be wrong. The error satisfies errors.Is for fs.ErrNotExist or
// ECONNREFUSED if there is no such process. The pid is 0 if the process is in a PID namespace that
// is not visible from this one.
func owner(device string) (int, error) {
	conn, err := net.DialTimeout("unix", socketPath(device), callTimeout)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return 0, fmt.Errorf("find the owner of %s: %w", socketPath(device), err)
	}
	return int(cred.Pid), nil
}

// unserved reports whether err means that no process serves the socket.
func unserved(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}

// errEnded means that a process exited while it was inspected.
var errEnded = errors.New("it has just exited")

// sameNetns reports whether the process is in the network namespace of the calling thread. Two
// nodes on one machine that chose the same device name would otherwise configure each other's
// tunnel.
func sameNetns(pid int) (bool, error) {
	mine, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil {
		return false, fmt.Errorf("inspect own network namespace: %w", err)
	}
	other, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false, fmt.Errorf("inspect process %d: %w", pid, errEnded)
	}
	if err != nil {
		return false, fmt.Errorf("inspect network namespace of process %d: %w", pid, err)
	}
	return os.SameFile(mine, other), nil
}

func checkNetns(device string, pid int) error {
	if pid == 0 {
		return nil
	}
	same, err := sameNetns(pid)
	if err == nil && !same {
		err = fmt.Errorf("device %s: %s belongs to process %d in another network namespace; give each node on this machine its own device name",
			device, socketPath(device), pid)
	}
	return err
}

// CleanUp stops the process of a userspace device and removes its socket. It succeeds if there is
// none. The key stays, and so does the link: route.CleanUp deletes it.
func CleanUp(cfg Config) error {
	if err := checkName(cfg.Device); err != nil {
		return err
	}
	pid, err := owner(cfg.Device)
	switch {
	case unserved(err):
	case err != nil:
		return err
	case pid == 0:
		return fmt.Errorf("stop the process of device %s: it is in another PID namespace", cfg.Device)
	default:
		if err := checkNetns(cfg.Device, pid); err != nil && !errors.Is(err, errEnded) {
			return err
		}
		if err := stop(cfg.Device, pid); err != nil {
			return err
		}
	}
	if err := os.Remove(socketPath(cfg.Device)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove socket: %w", err)
	}
	return nil
}

// stop kills the process that serves the device. The process has nothing to save, and a graceful
// exit would take a second.
func stop(device string, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	// From here on fd cannot refer to another process. Make sure that it refers to the right one.
	if now, err := owner(device); err != nil || now != pid {
		if unserved(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("stop process %d: it no longer serves %s", pid, socketPath(device)), err)
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("stop process %d of device %s: %w", pid, device, err)
	}
	if !ended(fd, 5*time.Second) {
		return fmt.Errorf("stop process %d of device %s: it does not exit", pid, device)
	}
	return nil
}

// ended waits for the process to exit, and reports whether it did.
func ended(pidfd int, timeout time.Duration) bool {
	deadline := time.Now().Add(timeout)
	for {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if n > 0 || left == 0 {
			return n > 0
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

// adoptOrStart makes sure that exactly one process serves the TUN, and that it answers.
func (d *Device) adoptOrStart(ctx context.Context) error {
	for {
		pid, err := d.adopt()
		switch {
		case err == nil:
			d.cfg.Log.Info("adopted the running WireGuard process", "device", d.cfg.Device, "pid", pid)
			return nil
		case unserved(err) && len(d.cfg.TunnelCommand) > 0:
			return d.start(ctx)
		case unserved(err):
			if err := d.await(ctx); err != nil {
				return err
			}
		case silent(err) && pid != 0:
			d.cfg.Log.Warn("the WireGuard process does not answer, killing it", "device", d.cfg.Device, "pid", pid, "err", err)
			if err := stop(d.cfg.Device, pid); err != nil {
				return err
			}
		case !dying(err):
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return errors.Join(err, fmt.Errorf("adopt the WireGuard process of device %s", d.cfg.Device))
		}
		d.reap()
	}
}

// foreignWait is how long to wait for a process that something else starts: long enough for a
// supervisor that starts it at once, and no longer, because the daemon does nothing else while it
// waits.
const foreignWait = 2 * time.Second

// await waits for the process that something else starts.
func (d *Device) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, foreignWait)
	defer cancel()
	for {
		if _, err := owner(d.cfg.Device); !unserved(err) {
			return nil
		}
		if sleep(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("find the WireGuard process of device %s: no process serves %s; check that its pod (DaemonSet strait-tunnel) is on this node and shares /var/run/wireguard",
				d.cfg.Device, socketPath(d.cfg.Device))
		}
	}
}

// adopt returns the pid of the process that serves the device's socket, and checks that it is in
// this network namespace and answers.
func (d *Device) adopt() (pid int, err error) {
	pid, err = owner(d.cfg.Device)
	if err != nil {
		return 0, err
	}
	if err := checkNetns(d.cfg.Device, pid); err != nil {
		return pid, err
	}
	_, err = d.client.read()
	return pid, err
}

// dying reports whether err is typical of a process that is exiting: its socket was still there a
// moment ago.
func dying(err error) bool {
	return errors.Is(err, errEnded) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF)
}
