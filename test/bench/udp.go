package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
)

// echo is a UDP server on all addresses. It answers from the address that the request went to, as
// CoreDNS does. It has no thread: the client calls it, so that neither waits for the other.
type echo struct {
	fd      int
	header  unix.Msghdr
	from    unix.RawSockaddrInet4
	vector  unix.Iovec
	payload [64]byte
	control [64]byte
}

func newEcho() (*echo, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1), unix.Bind(fd, &unix.SockaddrInet4{Port: podPort}))
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &echo{fd: fd}, nil
}

// answer sends one datagram back. The control message of a received datagram holds its destination.
// In a sent datagram the same message sets its source.
func (e *echo) answer() error {
	e.vector.Base = &e.payload[0]
	e.vector.SetLen(len(e.payload))
	e.header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&e.from)), Namelen: uint32(unsafe.Sizeof(e.from)), Iov: &e.vector, Control: &e.control[0]}
	e.header.SetIovlen(1)
	e.header.SetControllen(len(e.control))
	n, err := call("recvmsg", unix.SYS_RECVMSG, uintptr(e.fd), uintptr(unsafe.Pointer(&e.header)), unix.MSG_DONTWAIT, 0, 0, 0)
	if err != nil {
		return err
	}
	e.vector.SetLen(n)
	_, err = call("sendmsg", unix.SYS_SENDMSG, uintptr(e.fd), uintptr(unsafe.Pointer(&e.header)), 0, 0, 0, 0)
	return err
}

// drain discards the datagrams that have arrived.
func (e *echo) drain() {
	for {
		if _, err := receive(e.fd, e.payload[:], &e.from); err != nil {
			return
		}
	}
}

// trip measures one round trip of a datagram, and checks that peer answers, if it is valid.
func (e *echo) trip(fd int, to *unix.RawSockaddrInet4, peer netip.AddrPort) (time.Duration, error) {
	var from unix.RawSockaddrInet4
	var text [8]byte
	start := time.Now()
	err := send(fd, text[:], to)
	if err == nil {
		err = e.answer()
	}
	if err == nil {
		_, err = receive(fd, text[:], &from)
	}
	took := time.Since(start)
	if err == nil && peer.IsValid() && fromRaw(&from) != peer {
		err = fmt.Errorf("sent to %v, but %v answered", peer, fromRaw(&from))
	}
	return took, err
}

// connected measures a trip on a connected socket. The connect is not part of the measured time.
func (e *echo) connected(s *side, fd int) (time.Duration, error) {
	to := s.dial()
	if err := connect(fd, raw(to)); err != nil {
		return 0, err
	}
	return e.trip(fd, nil, to)
}

// fresh measures a socket's first datagram, as sent by a resolver that opens a socket for each
// query.
func (e *echo) fresh(s *side, fd int) (time.Duration, error) {
	to := s.dial()
	if s.forgets {
		return e.trip(fd, raw(to), netip.AddrPort{})
	}
	return e.trip(fd, raw(to), to)
}

// used measures a socket's second datagram to the same address.
func (e *echo) used(s *side, fd int) (time.Duration, error) {
	to := s.dial()
	if _, err := e.trip(fd, raw(to), to); err != nil {
		return 0, err
	}
	return e.trip(fd, raw(to), to)
}

func measureUDP(b *bench) error {
	w, done, err := b.loaded(l4.UDP)
	if err != nil {
		return err
	}
	server, err := newEcho()
	if err != nil {
		return err
	}
	unfloor, err := b.floorProgram(ebpf.AttachCGroupUDP4Sendmsg)
	if err != nil {
		return err
	}
	for _, p := range []pattern{hot, random} {
		suffix := p.suffix()
		for metric, sample := range map[string]func(*side, int) (time.Duration, error){
			"udp_connected": server.connected, "udp_unconnected": server.fresh, "udp_unconnected_used": server.used,
		} {
			sides := []side{
				b.bareSide("direct", 0, func() netip.AddrPort { return p.direct(w) }),
				b.servedSide("through", 0, func() netip.AddrPort { return p.through(w) }),
			}
			ratios := map[string]string{metric + "_ratio" + suffix: "through"}
			if metric == "udp_unconnected" { // its program is on the hook of sendto() alone
				sides = append(sides, b.floorSide(0, func() netip.AddrPort { return p.through(w) }))
				ratios[floorPrefix+metric+"_ratio"+suffix] = "floor"
			}
			medians, err := turns(b.size.rounds, b.size.samples, unix.SOCK_DGRAM, sides, sample)
			if err != nil {
				return fmt.Errorf("%s: %w", metric, err)
			}
			err = errors.Join(
				b.setRatios(medians, "direct", ratios),
				b.setRounds(metric+"_direct_ns"+suffix, medians["direct"]),
			)
			if err != nil {
				return err
			}
		}
	}
	return errors.Join(unix.Close(server.fd), unfloor(), done())
}
