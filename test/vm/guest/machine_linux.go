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

// mountAll mounts the file systems that a machine with systemd has. The only cgroup hierarchy is
// v2.
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

// manyFiles lets processes open as many files as under systemd. The kernel's default limit of 4096
// is lower than on any real machine.
func manyFiles() error {
	const files = 1 << 19
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files}); err != nil {
		return fmt.Errorf("set RLIMIT_NOFILE: %w", err)
	}
	return nil
}

// openPort opens the serial port and turns off terminal processing, so that output is written
// unchanged.
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

// loadModules loads the modules in the order of their file names, which is dependency order.
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

// kernelWarnings writes the kernel's warnings as notes: strait is perhaps the cause. An oops ends
// the run anyway, because it is a panic here (see the kernel's command line).
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
