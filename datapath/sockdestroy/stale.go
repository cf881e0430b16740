package sockdestroy

import (
	"cmp"
	"net/netip"
	"slices"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/enum"
	"strait.io/strait/internal/l4"
)

// Record is what the load balancer remembers of a socket: what it dialled and what it got.
type Record struct {
	// Cookie names the socket, for as long as the machine is up.
	Cookie   uint64
	Proto    l4.Proto
	Frontend netip.AddrPort
	Backend  netip.AddrPort
	// Connected says that the socket did connect(). A socket that did not is moved to another backend
	// by the load balancer with its next datagram, so there is nothing to destroy.
	Connected bool
}

// Target is a socket to be destroyed if it is still connected to Peer.
type Target struct {
	Cookie uint64
	Proto  l4.Proto
	Peer   netip.AddrPort
}

// Policy says which sockets are destroyed besides connected UDP.
type Policy struct {
	TCP TCPPolicy
}

// TCPPolicy says which TCP connections are destroyed. The zero value is TCPNever.
type TCPPolicy string

// A TCP connection is often worth more than the membership of its backend in a service: it lives as long
// as the backend answers. One to a dead machine never ends by itself while nothing is sent.
const (
	TCPNever TCPPolicy = "never"
	// TCPGone destroys connections to backends on machines that are dead.
	TCPGone TCPPolicy = "gone"
)

// UnmarshalText accepts the names of the policies, and the empty string for the default.
func (p *TCPPolicy) UnmarshalText(b []byte) error {
	return enum.Decode(p, b, TCPNever, TCPGone)
}

// Stale returns the sockets to be destroyed, each once, ordered by cookie. want is what is in force, and
// gone are the addresses of backends whose machine is dead.
//
// Connected UDP is stale when its frontend has its backend no longer, or is no more itself: it has no
// way to notice. TCP is stale when the machine is dead as well. What the frontend still sends traffic to
// is never stale: the client would only come back to it.
func Stale(records []Record, want []datapath.Frontend, gone []netip.Addr, policy Policy) []Target {
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
	fill(sets, want)
	var stale []Target
	for _, r := range records {
		if suspect(r) && !sets[r.frontend()][unmap(r.Backend)] {
			stale = append(stale, Target{r.Cookie, r.Proto, unmap(r.Backend)})
		}
	}
	slices.SortFunc(stale, func(a, b Target) int { return cmp.Or(cmp.Compare(a.Cookie, b.Cookie), a.Peer.Compare(b.Peer)) })
	return slices.CompactFunc(stale, func(a, b Target) bool { return a.Cookie == b.Cookie })
}

// fill gives each frontend that is asked for its set of backends: the cost is that of the sockets
// concerned, and one look at each frontend's address.
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
