package sockdestroy

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
)

// Sizes of the structures of linux/inet_diag.h. They are decoded by hand because a namespace can
// have very many sockets, of which few are looked for.
const (
	sizeofID      = 48 // struct inet_diag_sockid
	sizeofRequest = 8 + sizeofID
	sizeofSocket  = 4 + sizeofID + 20 // struct inet_diag_msg
)

// diagID is struct inet_diag_sockid: ports, addresses, interface and cookie of one socket.
type diagID [sizeofID]byte

func (id *diagID) cookie() uint64 {
	return uint64(binary.NativeEndian.Uint32(id[44:]))<<32 | uint64(binary.NativeEndian.Uint32(id[40:]))
}

// diagRequest is struct inet_diag_req_v2.
type diagRequest struct {
	family uint8
	proto  l4.Proto
	states uint32
	// more has a bit for each attribute that is asked for besides those that the kernel always adds.
	more uint8
	id   diagID
}

func (r diagRequest) message(kind, flags uint16) []byte {
	b := make([]byte, 0, unix.SizeofNlMsghdr+sizeofRequest)
	b = binary.NativeEndian.AppendUint32(b, unix.SizeofNlMsghdr+sizeofRequest)
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = append(b, make([]byte, 8)...) // sequence and port: only one request is open at a time
	b = append(b, r.family, uint8(r.proto), r.more, 0)
	b = binary.NativeEndian.AppendUint32(b, r.states)
	return append(b, r.id[:]...)
}

// diagSocket is the part of struct inet_diag_msg that is used.
type diagSocket struct {
	family, state uint8
	id            diagID
	inode         uint32
	// attributes are what follows it. They are in the buffer of the connection, and are overwritten.
	attributes []byte
}

func (s *diagSocket) local() netip.AddrPort { return s.address(0, 4) }
func (s *diagSocket) peer() netip.AddrPort  { return s.address(2, 20) }

// address reads an address and a port of the ID.
func (s *diagSocket) address(portAt, addrAt int) netip.AddrPort {
	port := binary.BigEndian.Uint16(s.id[portAt:])
	if s.family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s.id[addrAt:])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(s.id[addrAt:])).Unmap(), port)
}

// diagConn is a netlink socket in the network namespace in which it was opened.
type diagConn struct {
	fd  int
	buf []byte
}

func dialDiag() (*diagConn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open sock_diag socket: %w", err)
	}
	c := &diagConn{fd, make([]byte, 1<<16)}
	// A missing answer must not block the daemon.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		c.close()
		return nil, fmt.Errorf("set receive timeout of sock_diag socket: %w", err)
	}
	return c, nil
}

// close closes the socket. Its error does not matter, because there is nothing to flush.
func (c *diagConn) close() { _ = unix.Close(c.fd) }

// list calls each for every socket that matches the request.
func (c *diagConn) list(req diagRequest, each func(diagSocket)) error {
	if err := c.ask(req.message(unix.SOCK_DIAG_BY_FAMILY, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)); err != nil {
		return fmt.Errorf("list sockets: %w", err)
	}
	if err := c.answers(each); err != nil {
		return fmt.Errorf("list sockets: %w", err)
	}
	return nil
}

// destroy destroys the one socket that matches the request's ID completely.
func (c *diagConn) destroy(req diagRequest) error {
	if err := c.ask(req.message(unix.SOCK_DESTROY, unix.NLM_F_REQUEST|unix.NLM_F_ACK)); err != nil {
		return err
	}
	return c.answers(func(diagSocket) {})
}

func (c *diagConn) ask(message []byte) error {
	for {
		err := unix.Sendto(c.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if err != unix.EINTR {
			return err
		}
	}
}

// answers reads until the kernel reports the end or an error.
func (c *diagConn) answers(each func(diagSocket)) error {
	for {
		n, from, err := unix.Recvfrom(c.fd, c.buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue // not from the kernel
		}
		if done, err := parse(c.buf[:n], each); done || err != nil {
			return err
		}
	}
}

// parse decodes one datagram. done means that no other follows.
func parse(b []byte, each func(diagSocket)) (done bool, err error) {
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return true, fmt.Errorf("netlink message of %d bytes in a datagram with %d left", size, len(b))
		}
		kind, body := binary.NativeEndian.Uint16(b[4:]), b[unix.SizeofNlMsghdr:size]
		switch kind {
		case unix.NLMSG_DONE, unix.NLMSG_ERROR:
			if len(body) < 4 {
				return true, fmt.Errorf("netlink message of type %d without an error code", kind)
			}
			if errno := int32(binary.NativeEndian.Uint32(body)); errno < 0 {
				return true, unix.Errno(-errno)
			}
			return true, nil
		case unix.SOCK_DIAG_BY_FAMILY:
			if len(body) < sizeofSocket {
				return true, fmt.Errorf("sock_diag message of %d bytes, want at least %d", len(body), sizeofSocket)
			}
			each(diagSocket{
				family: body[0], state: body[1], id: diagID(body[4:]), inode: binary.NativeEndian.Uint32(body[68:]), attributes: body[sizeofSocket:],
			})
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return false, nil
}
