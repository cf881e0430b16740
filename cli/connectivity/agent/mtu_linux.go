package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// pathMTU finds the largest packet that arrives undivided, by asking for answers to datagrams that
// must not be fragmented. The answers are as large, and the server's kernel may divide them.
func pathMTU(ctx context.Context, to netip.AddrPort) (int, error) {
	headers, level, option, never := 20+8, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE
	if to.Addr().Is6() {
		headers, level, option, never = 40+8, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE
	}
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		second := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, never) })
		return errors.Join(err, second)
	}}
	conn, err := dialer.DialContext(ctx, "udp", to.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	const smallest, widest = 576, 9216
	found := largest(smallest, widest, func(mtu int) bool {
		for range 3 { // any packet can be lost
			_, _, err := exchange(ctx, conn, ask(mtu-headers), resend)
			if err == nil || errors.Is(err, syscall.EMSGSIZE) || ctx.Err() != nil {
				return err == nil
			}
		}
		return false
	})
	if found == 0 {
		return 0, errors.New("not even small packets are answered")
	}
	return found, nil
}
