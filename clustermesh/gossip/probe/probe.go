// Package probe finds out with a TCP connect whether a machine is up.
//
// Inputs are the addresses where the machine can answer; the output is a verdict. Package observe
// decides what a verdict means, and which machines to probe when.
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

// Timeout is how long a machine has to answer a TCP connect. It is too short for a lost SYN, which
// is first retransmitted after 1 s; the second round of probes covers that.
const Timeout = 700 * time.Millisecond

// TCP connects to all addresses at once, on the underlay and inside the tunnel, and returns the
// best verdict.
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
		return observe.Blind // this process was not scheduled, which means nothing about the machine
	}
	return result
}

// judge returns what the outcome of a connect means about the machine.
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
		// A router that lost the link to the machine reports host or network unreachable. The
		// kernel also reports network unreachable if this node has no route. But a node without any
		// route hears no other node, and then makes no claims.
		return observe.Silent
	}
	// The cause is local: no permission, no buffers, our interface down, or no tunnel key for the
	// address, for example.
	return observe.Blind
}
