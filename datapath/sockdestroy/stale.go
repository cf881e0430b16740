package sockdestroy

import (
	"cmp"
	"net/netip"
	"slices"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/enum"
	"strait.io/strait/internal/l4"
)

// Record is what the load balancer remembers about a socket: the frontend that it dialled and the
// backend that it got.
type Record struct {
	// Cookie identifies the socket, for as long as the machine is up.
	Cookie   uint64
	Proto    l4.Proto
	Frontend netip.AddrPort
	Backend  netip.AddrPort
	// Connected: the socket called connect(). The load balancer moves any other socket to
	// another backend with its next datagram, so there is nothing to destroy.
	Connected bool
}

// Target is a socket to destroy if it is still connected to Peer.
type Target struct {
	Cookie uint64
	Proto  l4.Proto
	Peer   netip.AddrPort
}

// Policy is which sockets are destroyed besides connected UDP.
type Policy struct {
	TCP TCPPolicy
}

// TCPPolicy is which TCP connections are destroyed. The zero value is TCPNever.
type TCPPolicy string

// A TCP connection is often worth more than its backend's membership in a service: it works as long
// as the backend answers. A connection to a dead machine never ends by itself while nothing is
// sent.
const (
	TCPNever TCPPolicy = "never"
	// TCPGone destroys connections to backends on dead machines.
	TCPGone TCPPolicy = "gone"
)

// UnmarshalText accepts the names of the policies, and the empty string for the default.
func (p *TCPPolicy) UnmarshalText(b []byte) error {
	return enum.Decode(p, b, TCPNever, TCPGone)
}

// Stale returns the sockets to destroy, without duplicates, ordered by cookie. keep are the
// frontends in force, with the backends that sockets may stay with (Grace.Keep), and gone are the
// addresses of backends on dead machines.
//
// A connected UDP socket is stale if its frontend does not keep its backend, or no longer exists:
// it has no way to notice. A TCP socket is stale only if in addition the machine is dead and the
// policy is TCPGone. A socket of a backend that the frontend keeps is never stale.
func Stale(records []Record, keep []datapath.Frontend, gone []netip.Addr, policy Policy) []Target {
	dead := make(map[netip.Addr]bool, len(gone))
	for _, a := range gone {
		dead[a.Unmap()] = true
	}
	suspect := func(r Record) bool {
		switch {
		case !r.Connected || r.Cookie == 0:
			return false
		case r.Proto == l4.TCP:
			return policy.TCP == TCPGone && dead[r.Backend.Addr().Unmap()]
		}
		return r.Proto == l4.UDP
	}
	sets := map[l4.Addr]map[netip.AddrPort]bool{}
	for _, r := range records {
		if suspect(r) {
			sets[r.frontend()] = nil
		}
	}
	fill(sets, keep)
	var stale []Target
	for _, r := range records {
		if suspect(r) && !sets[r.frontend()][unmap(r.Backend)] {
			stale = append(stale, Target{r.Cookie, r.Proto, unmap(r.Backend)})
		}
	}
	slices.SortFunc(stale, func(a, b Target) int { return cmp.Or(cmp.Compare(a.Cookie, b.Cookie), a.Peer.Compare(b.Peer)) })
	return slices.CompactFunc(stale, func(a, b Target) bool { return a.Cookie == b.Cookie })
}

// fill sets the backends of each frontend in sets. Besides one look at the address of each
// frontend, it costs only as much as the frontends concerned have backends.
func fill(sets map[l4.Addr]map[netip.AddrPort]bool, want []datapath.Frontend) {
	if len(sets) == 0 {
		return
	}
	for _, f := range want {
		if _, asked := sets[f.Addr]; !asked {
			continue
		}
		set := make(map[netip.AddrPort]bool, len(f.Backends))
		for _, b := range f.Backends {
			set[unmap(b.AddrPort())] = true
		}
		sets[f.Addr] = set
	}
}

func (r Record) frontend() l4.Addr {
	return l4.New(r.Frontend.Addr(), r.Frontend.Port(), r.Proto)
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
