package pool

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"
)

const (
	// maxDatagram is more than any datagram has, in bytes.
	maxDatagram = 64 << 10
	// receiveBuffer is how many bytes of datagrams may wait in the kernel.
	receiveBuffer = 2 << 20
	// retryPause is how long to wait after an error that a socket may recover from, such as too many
	// open files.
	retryPause = 50 * time.Millisecond
)

// sockets are those of the gossip port. memberlist's own transport makes 64 KiB of memory for each
// datagram before anything looks at it: strangers that send some thousand a second took half a
// processor by that.
type sockets struct {
	tcp *net.TCPListener
	udp *net.UDPConn
}

func openSockets(bind netip.AddrPort) (*sockets, error) {
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(bind))
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(bind))
	if err != nil {
		tcp.Close()
		return nil, err
	}
	_ = udp.SetReadBuffer(receiveBuffer) // the kernel may allow less; then more datagrams are lost
	return &sockets{tcp, udp}, nil
}

func (s *sockets) close() error { return errors.Join(s.tcp.Close(), s.udp.Close()) }

// accept passes connections on until the socket is closed.
func (s *sockets) accept(ctx context.Context, to func(net.Conn)) {
	for {
		conn, err := s.tcp.Accept()
		switch {
		case err == nil:
			to(conn)
		case !persists(ctx, err):
			return
		}
	}
}

// receive passes datagrams on until the socket is closed. Their memory is used again for the next.
func (s *sockets) receive(ctx context.Context, to func(b []byte, from netip.AddrPort, at time.Time)) {
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		switch {
		case err == nil:
			to(buf[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), time.Now())
		case !persists(ctx, err):
			return
		}
	}
}

// persists waits after an error, and reports whether the socket is still open.
func persists(ctx context.Context, err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryPause):
		return true
	}
}
