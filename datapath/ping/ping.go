// Package ping sends echo requests into the tunnel of one node, and receives the answers.
//
// Inputs are the tunnel's device, the node's own address inside it, and whom to ask; outputs are the
// answers. It must not know what an answer means, or who the peers are. What arrives is accepted only
// from the tunnel's device, whose source addresses WireGuard checks. Another machine behind a peer does
// not know the id of a request, which must be random. The peer's kernel answers (RFC 1122, section
// 3.2.2.6, and RFC 4443, section 4.2) with a packet of the same size, so nothing is amplified.
package ping

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// Socket is bound to the tunnel's device. Its methods can be called from several goroutines.
type Socket struct {
	conn   *net.IPConn
	family family
}

// Open opens a socket in the network namespace of the calling thread. The address need not be there
// yet. The error satisfies errors.Is(err, os.ErrPermission) without the capability NET_RAW, and
// errors.Is(err, unix.ENODEV) without the device.
func Open(ctx context.Context, device string, from netip.Addr) (*Socket, error) {
	f := familyOf(from)
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		controlled := c.Control(func(fd uintptr) { err = f.shape(int(fd), device) })
		return errors.Join(controlled, err)
	}}
	conn, err := config.ListenPacket(ctx, f.network, from.String())
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("open a socket for echo requests: %w; run as root, or with the capability NET_RAW", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open a socket for echo requests on %s: %w", device, err)
	}
	ip, is := conn.(*net.IPConn)
	if !is {
		return nil, errors.Join(fmt.Errorf("a socket of type %T", conn), conn.Close())
	}
	_ = ip.SetReadBuffer(readBuffer) // the system's limit can be lower
	return &Socket{ip, f}, nil
}

// readBuffer has room for the answers of a second to the most probes, with the kernel's overhead.
const readBuffer = 1 << 20

// Close ends Receive.
func (s *Socket) Close() error { return s.conn.Close() }

// Send sends a request with an id. Size is that of the whole packet in bytes; the smallest is sent if
// that is too small. The packet is never fragmented. The error satisfies errors.Is(err, unix.EMSGSIZE)
// if the device does not take it.
func (s *Socket) Send(to netip.Addr, id uint64, size int) error {
	_, err := s.conn.WriteToIP(s.family.request(id, size), &net.IPAddr{IP: to.AsSlice()})
	return err
}

// Receive waits for an answer.
func (s *Socket) Receive() (from netip.Addr, id uint64, err error) {
	buf := make([]byte, maxIPHeader+headers) // what is behind them is filling
	for {
		n, addr, err := s.conn.ReadFromIP(buf)
		if err != nil {
			return netip.Addr{}, 0, err
		}
		if id, is := s.family.answer(buf[:n]); is {
			from, _ := netip.AddrFromSlice(addr.IP)
			return from.Unmap(), id, nil
		}
	}
}
