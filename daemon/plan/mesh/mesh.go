// Package mesh decides who gets what of the mesh of WireGuard tunnels: keys, underlay addresses and
// prefixes, of which each has one owner.
//
// Input is Inputs, and the Past of the last mesh; output is a Mesh, and the Past for the next one.
// What the device, the routing table and the rules for packets get of it are its methods. Pure: the
// same Inputs and Past give the same Mesh. It must not know which endpoints services use, nor any
// shell.
package mesh

import (
	"cmp"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
)

// Mesh is the mesh of WireGuard tunnels as one node sees it: which nodes of the clusterset can be
// peers, which machines outside every cluster have a tunnel to this node, and what was refused, and
// why. What the kernel, and people, get of it are renderings. It is immutable. Where it has a
// node's addresses, they are those that the node got, not what it claims.
type Mesh struct {
	// Self is the node that sees it, and Key its WireGuard key; zero if it is not known.
	Self clustermesh.Origin
	Key  key.Public
	// Own are the addresses of the node's pods and of the node itself, as its own record gives
	// them, without guests. Which of them a peer accepts follows from the peer's own mesh. Zero
	// while the mesh is off.
	Own datapath.Sources
	// Ends are all nodes of the clusterset, sorted by origin.
	Ends []End
	// Guests are the machines outside every cluster that this cluster knows of, sorted by name.
	Guests []Admitted
	// TunnelOnly are ranges of other clusters' pods that packets leave for through tunnels only.
	TunnelOnly []netip.Prefix
	// ClusterSetIPs are the ranges of those, which no tunnel leads to.
	ClusterSetIPs []netip.Prefix
	// Problems are what nodes, guests and ranges did not get, and why, and what others claim of
	// theirs.
	Problems []clustermesh.Problem

	places places
	// topology decides which way packets travel. live are the nodes that tunnels can lead to and that are not
	// dead.
	topology topology.Topology
	live     []clustermesh.Origin
}

// Inputs is all that a mesh is made from, besides the past.
type Inputs struct {
	// State is what gossip holds, and Self the node that sees the mesh.
	State clustermesh.State
	Self  clustermesh.Origin
	// Dead are the nodes whose machines are dead.
	Dead map[clustermesh.Origin]bool
	// On is false if pods of other clusters are routable without strait: no tunnel leads anywhere.
	On bool
	// Topology is which way packets travel. It does not change in the life of a daemon. Nil is
	// topology.Default.
	Topology topology.Topology
	// CIDRs are the ranges for ClusterSetIPs, and Own all of strait's own addresses in this
	// cluster.
	CIDRs []netip.Prefix
	Own   datapath.Own
	// The others mean what they mean in plan.Inputs. Device counts only with a zero Past.
	Learning   bool
	Host       Host
	Device     []Had
	Remotes    []Remote
	ClusterIPs []netip.Prefix
	Guests     []Guest
}

// work is a mesh in the making.
type work struct {
	Inputs
	// had is what nodes had before, and hadGuests are the guests that had a tunnel, by their names.
	had       had
	hadGuests map[string]bool
	// disputed gets the nodes whose underlay addresses others have too.
	disputed map[clustermesh.Origin]bool
	// rivals gets what others claim of nodes.
	rivals rivals
	// guestKeys gets the guests that have their keys to themselves although nodes claim them.
	guestKeys map[key.Public]string
	// owned are the nodes' prefixes, for deciding about guests.
	owned map[clustermesh.Origin][]netip.Prefix
	// forbidden is made from the above.
	forbidden *forbidden
}

// mesh decides who gets what.
func (m work) mesh(nodes []node, kept *Mesh) *Mesh {
	m.forbidden = newForbidden(m)
	owned, lost, overlaps := m.ownedPrefixes(nodes)
	m.owned = owned
	out := &Mesh{Self: m.Self, ClusterSetIPs: m.CIDRs}
	if n := m.State.Records.Get(m.Self).Content.Node; n != nil {
		out.Key = n.PublicKey
	}
	var ends map[clustermesh.Origin]netip.AddrPort
	if m.On {
		ends, out.Problems = m.ends(nodes, owned)
	}
	out.Ends = m.describe(nodes, ends, owned, out.Problems)
	out.lead(m.Topology, nodes)
	out.Problems = append(out.Problems, overlaps...)
	out.Problems = append(out.Problems, m.rivals.problems()...)
	out.places = m.places(nodes, owned, lost, kept)
	out.Own = m.sources()
	var refused, open []clustermesh.Problem
	out.Guests, refused = m.admit(out.Own)
	out.TunnelOnly, open = m.tunnelOnly()
	out.Problems = slices.Concat(out.Problems, refused, open)
	return out
}

// sources returns the addresses of this node's pods and of the node itself.
func (m work) sources() datapath.Sources {
	n := m.State.Records.Get(m.Self).Content.Node
	if n == nil || !m.On {
		return datapath.Sources{}
	}
	s := datapath.Sources{Node: n.Inside, Port: n.GossipPort, OnDevice: clustermesh.IsTunnelAddr(n.Inside)}
	self := node{origin: m.Self, Node: n}
	for _, pre := range n.Prefixes {
		switch r := m.forbidden.check(self, pre.Masked()); {
		case r != nil && !r.contested:
		case slices.Contains(n.ClusterIPs, pre):
			s.ClusterIPs = append(s.ClusterIPs, pre.Masked())
		default:
			s.Prefixes = append(s.Prefixes, pre.Masked())
		}
	}
	slices.SortFunc(s.Prefixes, comparePrefix)
	slices.SortFunc(s.ClusterIPs, comparePrefix)
	s.Listeners = m.listeners()
	return s
}

// listeners returns the ports of this node's own endpoints that use its network, sorted. If several
// addresses have a port, it leads to the lowest.
func (m Inputs) listeners() (out []datapath.Listener) {
	own := m.State.Records.Get(m.Self).Content.Endpoints
	for i := range own {
		if !own[i].OnHost {
			continue
		}
		for _, p := range own[i].Ports {
			if p.Port != 0 && p.Proto.Balanced() {
				out = append(out, datapath.Listener{Addr: own[i].Addr, Port: p.Port, Proto: p.Proto})
			}
		}
	}
	slices.SortFunc(out, func(a, b datapath.Listener) int { return cmp.Or(a.Compare(b), a.Addr.Compare(b.Addr)) })
	return slices.CompactFunc(out, func(a, b datapath.Listener) bool { return a.Compare(b) == 0 })
}
