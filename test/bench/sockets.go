package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls here are raw, because the kernel is measured and not the Go runtime. None of them
// sleeps: on the loopback device a packet arrives before the call that sent it returns.

// raw returns an IPv4 address in the kernel's form.
func raw(a netip.AddrPort) *unix.RawSockaddrInet4 {
	return &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: a.Port()<<8 | a.Port()>>8, Addr: a.Addr().As4()}
}

func fromRaw(sa *unix.RawSockaddrInet4) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), sa.Port<<8|sa.Port>>8)
}

// call makes one system call. The directive keeps the memory that the arguments point to alive and
// in place.
//
//go:uintptrescapes
func call(name string, trap, a1, a2, a3, a4, a5, a6 uintptr) (int, error) {
	n, _, errno := unix.RawSyscall6(trap, a1, a2, a3, a4, a5, a6)
	if errno != 0 {
		return 0, fmt.Errorf("%s: %w", name, errno)
	}
	return int(n), nil
}

func connect(fd int, to *unix.RawSockaddrInet4) error {
	_, err := call("connect", unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to), 0, 0, 0)
	return err
}

// send sends b, to the address to unless that is nil.
func send(fd int, b []byte, to *unix.RawSockaddrInet4) error {
	size := unsafe.Sizeof(*to)
	if to == nil {
		size = 0
	}
	_, err := call("sendto", unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, uintptr(unsafe.Pointer(to)), size)
	return err
}

// receive receives into b, without waiting, and stores the sender's address in from.
func receive(fd int, b []byte, from *unix.RawSockaddrInet4) (int, error) {
	size := uint32(unsafe.Sizeof(*from))
	return call("recvfrom", unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(from)), uintptr(unsafe.Pointer(&size)))
}

// sockets opens n fresh IPv4 sockets. TCP sockets are closed with a reset, which leaves no
// TIME_WAIT, so that ports do not run out.
func sockets(n, kind int) ([]int, error) {
	fds := make([]int, 0, n)
	for range n {
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			fds = append(fds, fd)
			err = reset(fd, kind)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open socket: %w", err), closeAll(fds))
		}
	}
	return fds, nil
}

func reset(fd, kind int) error {
	if kind != unix.SOCK_STREAM {
		return nil
	}
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

func closeAll(fds []int) error {
	var errs []error
	for _, fd := range fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// listenTCP listens on all addresses, of both families.
func listenTCP(port int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0),
		unix.Bind(fd, &unix.SockaddrInet6{Port: port}), unix.Listen(fd, 4096))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("listen: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// accept accepts a connection that has already arrived.
func accept(listener int) (int, error) {
	fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("accept: %w", err)
	}
	return fd, reset(fd, unix.SOCK_STREAM)
}

// ns returns a duration in nanoseconds, the unit of samples.
func ns(d time.Duration) float64 { return float64(d.Nanoseconds()) }
