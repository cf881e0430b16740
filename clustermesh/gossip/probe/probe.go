// Package probe asks a machine whether it is there, by a TCP connect.
//
// Input are the addresses where it can answer; output is a verdict. What a verdict means, and whom to probe
// when, is decided in package observe.
package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"strait.io/strait/clustermesh/gossip/observe"
)

// Timeout is how long a machine has to answer a TCP connect. It covers no lost SYN (its first
// repetition comes after 1 s); that is what the second round is for.
const Timeout = 700 * time.Millisecond

// TCP connects to all addresses at once: on the underlay and inside the tunnel.
func TCP(ctx context.Context, addrs []netip.AddrPort) observe.Verdict {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	began := time.Now()
	found := make(chan observe.Verdict, len(addrs))
	for _, a := range addrs {
		go func() {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", a.String())
			if err == nil {
				conn.Close()
			}
			found <- judge(err)
		}()
	}
	result := observe.Blind
	for range addrs {
		result = max(result, <-found)
		if result == observe.Answered {
			return observe.Answered
		}
	}
	if time.Since(began) > 2*Timeout {
		return observe.Blind // we were not scheduled: our own trouble, not the machine's
	}
	return result
}

// judge says what the outcome of a connect tells about the machine.
func judge(err error) observe.Verdict {
	var timeout net.Error
	switch {
	case err == nil, errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return observe.Answered
	case errors.Is(err, context.Canceled):
		return observe.Blind
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return observe.Silent
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EHOSTDOWN), errors.Is(err, syscall.ENETUNREACH):
		// A router that lost the link to the machine answers either; the kernel reports the second for a
		// route missing here, too. A node without any route hears no other, and then makes no claims.
		return observe.Silent
	}
	// No permission, no buffers, own interface down, no tunnel key for the address: says nothing.
	return observe.Blind
}
