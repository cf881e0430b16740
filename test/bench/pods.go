package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// pods is a server on all addresses. It answers each connection with the 16 bytes of the address
// that the connection came to.
type pods struct {
	fd int
	wg sync.WaitGroup
}

func servePods(port, threads int) (*pods, error) {
	fd, err := listenTCP(port)
	if err != nil {
		return nil, err
	}
	p := &pods{fd: fd}
	for range threads {
		p.wg.Go(p.serve)
	}
	return p, nil
}

func (p *pods) serve() {
	for {
		fd, _, err := unix.Accept4(p.fd, unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			continue
		}
		if err != nil {
			return // shut down
		}
		if at, err := unix.Getsockname(fd); err == nil {
			to := at.(*unix.SockaddrInet6)
			_, _ = unix.Write(fd, to.Addr[:]) // the client notices a lost answer
		}
		_ = unix.Close(fd)
	}
}

func (p *pods) close() error {
	err := unix.Shutdown(p.fd, unix.SHUT_RDWR) // wakes threads that wait for a connection
	p.wg.Wait()
	return errors.Join(err, unix.Close(p.fd))
}

// dialer is the form in which an application gives an address: IPv4, IPv6, or IPv4 on an IPv6
// socket.
type dialer struct {
	domain int
	vip    func(frontend int) netip.Addr
	pod    func(frontend, pod int) netip.Addr
}

var (
	overIPv4   = dialer{unix.AF_INET, vip4, pod4}
	overIPv6   = dialer{unix.AF_INET6, vip6, pod6}
	overMapped = dialer{unix.AF_INET6, vip4, pod4}
)

func vip4(f int) netip.Addr { return netip.AddrFrom4([4]byte{10, 97, 0, byte(f)}) }
func vip6(f int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fd00:96::%x", f+1)) }
func pod4(f, p int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 210, byte(f), byte(p)})
}
func pod6(f, p int) netip.Addr {
	a := podRange6.Addr().As16()
	binary.BigEndian.PutUint16(a[12:], uint16(f+1))
	binary.BigEndian.PutUint16(a[14:], uint16(p))
	return netip.AddrFrom16(a)
}

func (d dialer) sockaddr(a netip.AddrPort) unix.Sockaddr {
	if d.domain == unix.AF_INET6 {
		return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}

func (d dialer) frontend(number int) netip.AddrPort {
	return netip.AddrPortFrom(d.vip(number), servicePort)
}

// open dials an address over a fresh TCP socket.
func (d dialer) open(to netip.AddrPort) (int, error) {
	fd, err := unix.Socket(d.domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	err = errors.Join(reset(fd, unix.SOCK_STREAM),
		// A missing answer is a failure, and must not block forever.
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}))
	if err == nil {
		err = unix.Connect(fd, d.sockaddr(to))
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("connect: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// ask opens a connection through a frontend and returns which of its pods answers; -1 if another
// frontend's pod does.
func (d dialer) ask(frontend, pods int) (int, error) {
	from, err := d.askAt(d.frontend(frontend))
	if err != nil {
		return 0, err
	}
	for pod := range pods {
		if d.pod(frontend, pod) == from {
			return pod, nil
		}
	}
	return -1, nil
}

// askAt opens a connection and returns the address of the pod that answers.
func (d dialer) askAt(to netip.AddrPort) (netip.Addr, error) {
	fd, err := d.open(to)
	if err != nil {
		return netip.Addr{}, err
	}
	var b [16]byte
	n, err := unix.Read(fd, b[:])
	if err == nil && n != len(b) {
		err = fmt.Errorf("got %d bytes, want %d", n, len(b))
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return netip.Addr{}, fmt.Errorf("read: %w", err)
	}
	return netip.AddrFrom16(b).Unmap(), nil
}

// tally counts the outcomes of clients' connects, and keeps the first failures as examples for
// people.
type tally struct {
	connects, failed, wrong atomic.Int64
	mu                      sync.Mutex
	examples                []string
}

func (t *tally) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.examples) < 5 {
		t.examples = append(t.examples, fmt.Sprintf(format, args...))
	}
}

// check connects once and checks the answer against the sets that were in force.
func (t *tally) check(d dialer, frontend, pods int, h *history) {
	since := h.now()
	pod, err := d.ask(frontend, pods)
	t.connects.Add(1)
	switch {
	case err != nil:
		t.failed.Add(1)
		t.note("frontend %d: %v", frontend, err)
	case pod < 0 || !h.allows(pod, since):
		t.wrong.Add(1)
		t.note("frontend %d: answered by pod %d, which was in none of the sets in force", frontend, pod)
	}
}
