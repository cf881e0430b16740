package sockdestroy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
)

// Socket is what the kernel knows of an open socket.
type Socket struct {
	Cookie uint64
	Proto  l4.Proto
	// Local is its own address; that of an unconnected socket can be unspecified.
	Local netip.AddrPort
	// Inode is its number in /proc/PID/fd.
	Inode uint32
	// Cgroup is the ID of the cgroup (v2) in which it was made; 0 if that is not known.
	Cgroup uint64
	// TCP is nil if the socket is none of TCP, or if the kernel does not tell.
	TCP *TCP
}

// TCP is what the kernel counted for a TCP connection.
type TCP struct {
	// Sent and Received are bytes of the application, each once.
	Sent, Received uint64
	RTT            time.Duration // smoothed; 0 if it was not measured yet
}

// Look returns the sockets with the given cookies that are open, by cookie, in any network namespace of
// the machine. TCP sockets that are not connected (any more) are not found. An error means that some
// namespace could not be searched, so a socket that is missing in the result can be open.
func Look(ctx context.Context, procfs string, cookies map[uint64]bool) (map[uint64]Socket, error) {
	found := make(map[uint64]Socket, len(cookies))
	if len(cookies) == 0 {
		return found, nil
	}
	spaces, unread := namespaces(procfs)
	_, err := visit(ctx, procfs, spaces, func() (int, error) {
		err := lookHere(func(s diagSocket, proto l4.Proto) {
			// A socket without an inode is closed, and the kernel only says goodbye to its peer.
			if cookie := s.id.cookie(); cookies[cookie] && s.inode != 0 {
				found[cookie] = s.socket(proto)
			}
		})
		return len(cookies) - len(found), err
	})
	if err = errors.Join(unread, err); err != nil && len(found) < len(cookies) {
		return found, fmt.Errorf("look at sockets: %w", err)
	}
	return found, nil
}

// Attributes of linux/inet_diag.h. The kernel adds the cgroup without being asked, from 5.8 on.
const (
	attrInfo   = 2
	attrCgroup = 21
)

// lookHere calls each for every TCP connection and UDP socket in the namespace of the calling thread.
func lookHere(each func(diagSocket, l4.Proto)) error {
	c, err := dialDiag()
	if err != nil {
		return err
	}
	defer c.close()
	var errs []error
	for _, proto := range []l4.Proto{l4.UDP, l4.TCP} {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			r := diagRequest{family: family, proto: proto, states: anyState}
			if proto == l4.TCP {
				r.states, r.more = states[proto], 1<<(attrInfo-1)
			}
			if err := c.list(r, func(s diagSocket) { each(s, proto) }); err != nil {
				errs = append(errs, fmt.Errorf("%s sockets: %w", proto, explainList(err)))
			}
		}
	}
	return errors.Join(errs...)
}

// socket decodes a socket with its attributes. An attribute that is cut off counts as missing.
func (s *diagSocket) socket(proto l4.Proto) Socket {
	out := Socket{Cookie: s.id.cookie(), Proto: proto, Local: s.local(), Inode: s.inode}
	for b := s.attributes; len(b) >= unix.SizeofNlAttr; {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofNlAttr || size > len(b) {
			break
		}
		value := b[unix.SizeofNlAttr:size]
		switch kind := binary.NativeEndian.Uint16(b[2:]); {
		case kind == attrCgroup && len(value) >= 8:
			out.Cgroup = binary.NativeEndian.Uint64(value)
		case kind == attrInfo && proto == l4.TCP:
			out.TCP = tcpOf(value)
			// The kernel counts the peer's FIN as a byte.
			if closed := s.state == stateCloseWait || s.state == stateLastAck || s.state == stateClosing; closed && out.TCP != nil {
				out.TCP.Received -= min(1, out.TCP.Received)
			}
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return out
}

// States of include/net/tcp_states.h in which the peer has closed its side.
const (
	stateCloseWait = 8
	stateLastAck   = 9
	stateClosing   = 11
)

// tcpOf decodes struct tcp_info of linux/tcp.h; nil if the kernel is too old to count bytes.
func tcpOf(b []byte) *TCP {
	var info unix.TCPInfo // for the places of its fields only: the kernel's can be shorter or longer
	const (
		rtt      = unsafe.Offsetof(info.Rtt)
		received = unsafe.Offsetof(info.Bytes_received)
		sent     = unsafe.Offsetof(info.Bytes_sent)
		again    = unsafe.Offsetof(info.Bytes_retrans)
	)
	if uintptr(len(b)) < again+8 {
		return nil
	}
	number := binary.NativeEndian.Uint64
	out := TCP{Sent: number(b[sent:]), Received: number(b[received:]), RTT: time.Duration(binary.NativeEndian.Uint32(b[rtt:])) * time.Microsecond}
	out.Sent -= min(out.Sent, number(b[again:]))
	return &out
}
