package gossip

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"strait.io/strait/clustermesh"
)

// probeTimeout is how long a machine has to answer a TCP connect. It covers no lost SYN (its first
// repetition comes after 1 s); that is what the second round is for.
const probeTimeout = 700 * time.Millisecond

// verdict is what probing a machine found.
type verdict uint8

const (
	// blind: the probe could not be made or ran late, so it says nothing about the machine.
	blind verdict = iota
	// silent: nothing answered on any address.
	silent
	// answered: something did, if only by refusing.
	answered
)

// probeFunc probes the machine that has these addresses.
type probeFunc func(ctx context.Context, addrs []netip.AddrPort) verdict

// tcpProbe connects to all addresses at once: on the underlay and inside the tunnel.
func tcpProbe(ctx context.Context, addrs []netip.AddrPort) verdict {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	began := time.Now()
	found := make(chan verdict, len(addrs))
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
	result := blind
	for range addrs {
		result = max(result, <-found)
		if result == answered {
			return answered
		}
	}
	if time.Since(began) > 2*probeTimeout {
		return blind // we were not scheduled: our own trouble, not the machine's
	}
	return result
}

// judge says what the outcome of a connect tells about the machine.
func judge(err error) verdict {
	var timeout net.Error
	switch {
	case err == nil, errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return answered
	case errors.Is(err, context.Canceled):
		return blind
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return silent
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EHOSTDOWN), errors.Is(err, syscall.ENETUNREACH):
		// A router that lost the link to the machine answers either; the kernel reports the second for a
		// route missing here, too. A node without any route hears nobody, and then it does not accuse.
		return silent
	}
	// No permission, no buffers, own interface down, no tunnel key for the address: says nothing.
	return blind
}

// probeAddrs are where a machine can answer: its addresses on the underlay, its address inside the
// tunnel, and where it was last a member.
func probeAddrs(rec clustermesh.Record, last netip.AddrPort) []netip.AddrPort {
	var out []netip.AddrPort
	add := func(a netip.AddrPort) {
		if a.Addr().IsValid() && a.Port() != 0 && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	if n := rec.Content.Node; n != nil {
		for _, a := range n.Addresses {
			add(netip.AddrPortFrom(a, n.GossipPort))
		}
		add(netip.AddrPortFrom(n.Inside, n.GossipPort))
	}
	add(last)
	return out
}
