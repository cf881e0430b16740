package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"strait.io/strait/test/vm/job"
)

// mountAll mounts what a machine with systemd has. cgroup v2 is the whole tree, and the only one.
func mountAll() error {
	for _, m := range []struct{ kind, at, options string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"devtmpfs", "/dev", ""},
		{"tmpfs", "/tmp", "mode=1777"},
		{"tmpfs", "/run", "mode=755"},
		{"cgroup2", "/sys/fs/cgroup", ""},
		{"bpf", "/sys/fs/bpf", ""},
		{"tracefs", "/sys/kernel/tracing", ""},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, m.options); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("%s on %s: %w", m.kind, m.at, err)
		}
	}
	return nil
}

// manyFiles lets processes open as many files as under systemd; the kernel's own bound of 4096 is none that a
// machine has.
func manyFiles() error {
	const files = 1 << 19
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
		return fmt.Errorf("set RLIMIT_NOFILE: %w", err)
	}
	return nil
}

// openPort opens the serial port without the terminal's changes to what is written.
func openPort() (*os.File, error) {
	f, err := os.OpenFile(serialPort, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		t.Oflag &^= unix.OPOST
		t.Lflag = 0
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", serialPort, err)
	}
	return f, nil
}

func kernelRelease() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err == nil {
		ifr.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
	}
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

// loadModules loads in the order of names, which is that of dependency.
func loadModules() error {
	files, err := filepath.Glob(job.Modules + "/*.ko")
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := loadModule(name); err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	return nil
}

func loadModule(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// kernelWarnings passes on what the kernel complained of. An oops is a panic here (see the command line), so
// that it needs no eye; a warning may or may not be ours.
func kernelWarnings(out *lines) error {
	b := make([]byte, 1<<20)
	const readAll = 3 // SYSLOG_ACTION_READ_ALL
	n, err := unix.Klogctl(readAll, b)
	if err != nil {
		return fmt.Errorf("read the kernel's log: %w", err)
	}
	for line := range strings.Lines(string(b[:n])) {
		for _, sign := range []string{"WARNING:", "BUG:", "Oops", "stall", "lockup", "unregister_netdevice"} {
			if strings.Contains(line, sign) {
				out.line(job.NoteLine("kernel: " + strings.TrimSpace(line)))
				break
			}
		}
	}
	return nil
}
