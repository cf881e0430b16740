// Package datapath describes what the kernel of one node should hold (frontends, peers, routes and
// sources), and computes how to get there from what it holds.
//
// Its input is Desired, made by daemon/plan. The packages socklb, wireguard, route and masquerade
// apply it. The package is pure: it does no I/O, and must not know about clusters, the rules of
// services or Kubernetes (package clustermesh).
package datapath

import (
	"cmp"
	"net/netip"
	"slices"

	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// MaxWeight is the largest weight that a backend can have.
const MaxWeight = 1 << 16

// Backend is where traffic is sent: a pod's address and port. The protocol is the frontend's.
type Backend struct {
	IP   netip.Addr `json:"ip"`
	Port uint16     `json:"port"`
	// Weight is the share of new connections relative to the frontend's other backends,
	// 1…MaxWeight.
	Weight uint32 `json:"weight"`
}

// Compare orders by IP, then port.
func (b Backend) Compare(c Backend) int {
	return cmp.Or(b.IP.Compare(c.IP), cmp.Compare(b.Port, c.Port))
}

// AddrPort returns the backend's address and port.
func (b Backend) AddrPort() netip.AddrPort { return netip.AddrPortFrom(b.IP, b.Port) }

// Frontend is what clients connect to. Without backends it refuses connections.
type Frontend struct {
	Addr l4.Addr `json:"addr"`
	// Service is the frontend's name for people, "namespace/name". The kernel does not hold it.
	Service string `json:"service,omitempty"`
	// Backends are sorted, without duplicate addresses, and all of the frontend's IP family.
	Backends []Backend `json:"backends"`
	// AffinitySeconds is how long a client keeps its backend after its last connection; 0 means no
	// affinity.
	AffinitySeconds uint32 `json:"affinitySeconds,omitempty"`
	// Idle are endpoints of a UDP frontend that get no new connections, and whose pods are still
	// there. The kernel does not hold them. An endpoint that is neither here nor a backend has left.
	Idle []Idle `json:"idle,omitempty"`
}

// Idle is an endpoint with which connected sockets may stay, at least for a while.
type Idle struct {
	Addr netip.AddrPort `json:"addr"`
	// Unready: the pod is not ready. Otherwise it is, and others are preferred.
	Unready bool `json:"unready,omitempty"`
}

// Equal reports whether the kernel would hold the same for both frontends.
func (f Frontend) Equal(g Frontend) bool {
	return f.Addr == g.Addr && f.AffinitySeconds == g.AffinitySeconds && slices.Equal(f.Backends, g.Backends)
}

// Peer is a WireGuard peer: a node of another cluster, or a guest.
type Peer struct {
	// Name is the node's name for people, "cluster/node".
	Name string     `json:"name"`
	Key  key.Public `json:"key"`
	// Underlay is the peer's outer UDP address.
	Underlay netip.AddrPort `json:"underlay"`
	// AllowedIPs are sorted. No other peer has any of them.
	AllowedIPs []netip.Prefix `json:"allowedIPs"`
	// Inside is where the peer's daemon listens inside the tunnel; its address can be invalid.
	Inside netip.AddrPort `json:"inside,omitzero"`
	// Guest: the peer is a machine outside every cluster; see Sources.Guests.
	Guest bool `json:"guest,omitempty"`
}

// Equal reports whether the device would be configured the same for both peers.
func (p Peer) Equal(q Peer) bool {
	return p.Key == q.Key && p.Underlay == q.Underlay && slices.Equal(p.AllowedIPs, q.AllowedIPs)
}

// Route is an entry of strait's own routing table: into the tunnel, or unreachable.
type Route struct {
	Dst netip.Prefix `json:"dst"`
	// Src is the source address for the node's own packets, one that the peer accepts; can be
	// invalid.
	Src netip.Addr `json:"src"`
	// MTU is the size in bytes of the largest packet to Dst, if that is less than the tunnel's MTU;
	// 0 otherwise.
	MTU int `json:"mtu,omitempty"`
	// Unreachable makes a connection to Dst fail at once instead of leaving the node.
	Unreachable bool `json:"unreachable,omitempty"`
}

// Sources are the source addresses that peers accept from this node. Without the mesh there are
// none.
type Sources struct {
	// Prefixes are sorted and contain the node's pods, which keep their addresses on the way into
	// the tunnel.
	Prefixes []netip.Prefix `json:"prefixes,omitempty"`
	// ClusterIPs are sorted ranges of Services of the node's cluster, which peers may call through the
	// node. Something else on the node, such as kube-proxy, replaces these addresses.
	ClusterIPs []netip.Prefix `json:"clusterIPs,omitempty"`
	// Node is the node's own address, for packets that are not a pod's; can be invalid.
	Node netip.Addr `json:"node"`
	// Port is the node's TCP port that peers may connect to inside the tunnel; 0 if there is none.
	Port uint16 `json:"port,omitempty"`
	// OnDevice: the tunnel's device has the address Node, because no other device has it.
	OnDevice bool `json:"onDevice,omitempty"`
	// Listeners are ports of Node that lead on to an address of the node outside the tunnel, because
	// a pod that uses the node's network listens there. They are sorted, and no port is there twice.
	Listeners []Listener `json:"listeners,omitempty"`
	// Guests are sorted by name. No address is in the ranges of two.
	Guests []Guest `json:"guests,omitempty"`
}

// Listener is a port on an address of the node itself.
type Listener struct {
	Addr  netip.Addr `json:"addr"`
	Port  uint16     `json:"port"`
	Proto l4.Proto   `json:"proto"`
}

// Compare orders by protocol and port.
func (l Listener) Compare(m Listener) int {
	return cmp.Or(cmp.Compare(l.Proto, m.Proto), cmp.Compare(l.Port, m.Port))
}

// Own are the addresses whose every port is strait's: a connection to one without a frontend is
// refused. A frontend's address need not be among them; then only the frontend's port is strait's.
type Own struct {
	// Prefixes are at most one of each IP family, sorted.
	Prefixes []netip.Prefix `json:"prefixes,omitempty"`
	// Addrs are sorted, without duplicates and outside the prefixes.
	Addrs []netip.Addr `json:"addrs,omitempty"`
}

// Equal reports whether both have the same addresses. It is cheap for two that share their lists.
func (o Own) Equal(p Own) bool {
	shared := len(o.Addrs) == len(p.Addrs) && (len(o.Addrs) == 0 || &o.Addrs[0] == &p.Addrs[0])
	return slices.Equal(o.Prefixes, p.Prefixes) && (shared || slices.Equal(o.Addrs, p.Addrs))
}

// Desired is everything that the kernel of one node should hold. It is a value: it never changes
// once made.
type Desired struct {
	Frontends []Frontend `json:"frontends"`
	Own       Own        `json:"own,omitzero"`
	Peers     []Peer     `json:"peers"`
	Routes    []Route    `json:"routes"`
	Sources   Sources    `json:"sources"`
	// Gone are the addresses of pods on dead machines, sorted: connections to them will never be
	// answered.
	Gone []netip.Addr `json:"gone,omitempty"`
}
