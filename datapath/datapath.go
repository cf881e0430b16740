// Package datapath says what the kernel of one node should hold: frontends, peers, routes, sources; and how
// to get from what it holds to that.
//
// Input is Desired, made by daemon/plan; the shells socklb, wireguard, route and masquerade apply it. Pure: it must
// not know clusters, services' rules or Kubernetes (package clustermesh), nor do any I/O.
package datapath

import (
	"cmp"
	"net/netip"
	"slices"

	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// MaxWeight bounds a backend's weight.
const MaxWeight = 1 << 16

// Backend is where traffic is sent: a pod's address and port, by the frontend's protocol.
type Backend struct {
	IP   netip.Addr `json:"ip"`
	Port uint16     `json:"port"`
	// Weight is the share of new connections relative to the frontend's other backends, 1…MaxWeight.
	Weight uint32 `json:"weight"`
}

// Compare orders by IP, then port.
func (b Backend) Compare(c Backend) int {
	return cmp.Or(b.IP.Compare(c.IP), cmp.Compare(b.Port, c.Port))
}

// AddrPort is the backend's address without its weight.
func (b Backend) AddrPort() netip.AddrPort { return netip.AddrPortFrom(b.IP, b.Port) }

// Frontend is what clients connect to. Without backends it refuses connections.
type Frontend struct {
	Addr l4.Addr `json:"addr"`
	// Service names the frontend to people: "namespace/name". The kernel does not hold it.
	Service string `json:"service,omitempty"`
	// Backends are sorted, each address once, all of the frontend's IP family.
	Backends []Backend `json:"backends"`
	// AffinitySeconds is how long a client keeps its backend after its last connection; 0 is no affinity.
	AffinitySeconds uint32 `json:"affinitySeconds,omitempty"`
}

// Equal reports that the kernel would hold the same for both.
func (f Frontend) Equal(g Frontend) bool {
	return f.Addr == g.Addr && f.AffinitySeconds == g.AffinitySeconds && slices.Equal(f.Backends, g.Backends)
}

// Peer is a WireGuard neighbour: a node of another cluster.
type Peer struct {
	// Name is the node's, "cluster/node", for people.
	Name string     `json:"name"`
	Key  key.Public `json:"key"`
	// Underlay is the peer's outer UDP address.
	Underlay netip.AddrPort `json:"underlay"`
	// AllowedIPs are sorted and belong to no other peer.
	AllowedIPs []netip.Prefix `json:"allowedIPs"`
	// Inside is where the peer's own daemon listens, by way of the tunnel; its address may be invalid.
	Inside netip.AddrPort `json:"inside,omitzero"`
}

// Equal reports that the device would be configured the same for both.
func (p Peer) Equal(q Peer) bool {
	return p.Key == q.Key && p.Underlay == q.Underlay && slices.Equal(p.AllowedIPs, q.AllowedIPs)
}

// Route is an entry of strait's own routing table: into the tunnel, or unreachable.
type Route struct {
	Dst netip.Prefix `json:"dst"`
	// Src is the source address for the node's own packets, one that the peer accepts; may be invalid.
	Src netip.Addr `json:"src"`
	// Unreachable makes a connection to Dst fail at once instead of leaving the node.
	Unreachable bool `json:"unreachable,omitempty"`
}

// Sources are the source addresses that peers accept from this node. Without the mesh there are none.
type Sources struct {
	// Prefixes are sorted and hold the node's pods, which keep their addresses on the way into the tunnel.
	Prefixes []netip.Prefix `json:"prefixes,omitempty"`
	// Node is the node's own, for what is not a pod's; may be invalid.
	Node netip.Addr `json:"node"`
	// OnDevice: the tunnel's device bears Node, since no other device of the node does.
	OnDevice bool `json:"onDevice,omitempty"`
}

// Desired is all that the kernel of one node should hold. A value: never changed once made.
type Desired struct {
	Frontends []Frontend `json:"frontends"`
	Peers     []Peer     `json:"peers"`
	Routes    []Route    `json:"routes"`
	Sources   Sources    `json:"sources"`
	// Gone are the addresses of pods on dead machines, sorted: connections to them will never be answered.
	Gone []netip.Addr `json:"gone,omitempty"`
}
