// Package topology decides which daemons of a clusterset keep streams to each other, which way records
// and packets travel, and what nodes do for others on these ways.
//
// Inputs are a node, the members that it sees and the records that it has to pass on. Outputs are nodes.
// All is a pure function of these, so daemons that see the same members agree without a message. It
// must not know how streams or tunnels are made, nor what is in a record. A topology is one file: a type
// that implements Topology, as FullMesh and Relays do. Default chooses between the two.
package topology

import "strait.io/strait/clustermesh"

// Topology is one answer for a whole clusterset. Members are live daemons, or live nodes that tunnels can
// lead to, in any order. Self is one of them, even if it is not listed.
type Topology interface {
	// Ways returns how a daemon exchanges records.
	Ways(View) Ways
	// Relays returns the relays of all clusters, for people; none if every member is like each other.
	Relays(View) []clustermesh.Origin
	// NextHop returns where self sends the packets for other nodes: to the node itself, or to a gateway. The
	// way back must lead through the same nodes, because a tunnel only accepts packets of those that it leads
	// to.
	NextHop(self clustermesh.Origin, members []clustermesh.Origin) func(to clustermesh.Origin) clustermesh.Origin
	// Roles returns what a node does for others.
	Roles(self clustermesh.Origin, members []clustermesh.Origin) Roles
}

// View is whom a daemon sees.
type View struct {
	Self clustermesh.Origin
	// Members are the live daemons, in any order, with or without Self.
	Members []clustermesh.Origin
	// Known is how many nodes the clusterset has, whether their daemons are live or not; fewer than
	// there are members if that is not known.
	Known int
	// Older are those members that know no relays: they keep a stream to everybody.
	Older map[clustermesh.Origin]bool
	// Unknown are those members that have published nothing yet, as far as is known here. They are no
	// relays while there are others: whoever has the gossip key can invent members, but no record.
	Unknown map[clustermesh.Origin]bool
	// Use is what nodes say about being relays, if they say anything.
	Use map[clustermesh.Origin]clustermesh.RelayUse
	// Doubtful are those to which there should be a stream, and which send nothing.
	Doubtful map[clustermesh.Origin]bool
	// Guests are daemons that keep a stream to this one, whether it needs one or not: they may see
	// other members, or be none yet. Each is served.
	Guests []clustermesh.Origin
}

// Ways are how one daemon exchanges records with others.
type Ways interface {
	// Neighbours returns the members to which the daemon keeps a stream, the only ones with which it
	// exchanges records, besides guests. Among daemons that see the same it must be symmetric: both
	// ends of a stream keep it, and either can dial. The graph over all members must be connected:
	// otherwise records do not reach every member.
	Neighbours() []clustermesh.Origin
	// Spread returns which neighbours are sent a new record, and which only get its version, so that they can
	// ask. If it has a choice, it takes the first neighbours. There can be others than Neighbours returned:
	// guests.
	Spread(news News, neighbours []clustermesh.Origin) Spread
}

// Tunnels returns at which node the tunnel ends that packets of self for another node enter. It is the zero
// Origin if they enter none: within a cluster, the cluster's own network carries packets, except from and to
// gateways.
func Tunnels(t Topology, self clustermesh.Origin, members []clustermesh.Origin) func(to clustermesh.Origin) clustermesh.Origin {
	next, gateway := t.NextHop(self, members), t.Roles(self, members).Gateway
	return func(to clustermesh.Origin) clustermesh.Origin {
		hop := next(to)
		if to == self || hop.Cluster == self.Cluster && !gateway && !t.Roles(hop, members).Gateway {
			return clustermesh.Origin{}
		}
		return hop
	}
}

// Roles are what a node does for others.
type Roles struct {
	// Relay passes on records that others wrote.
	Relay bool
	// Gateway forwards packets between its cluster and others.
	Gateway bool
}

// News is a record that is new to a daemon.
type News struct {
	// From is the peer that sent it; zero if it was written here.
	From clustermesh.Origin
	// Writer is the origin of the record.
	Writer clustermesh.Origin
	// Repaired is true if it was asked for, so that most other daemons have it.
	Repaired bool
}

// Spread is where news go.
type Spread struct {
	// Records are sent the record, and Offers its version. Hints are sent the version too, after a
	// moment: they should have the record by then, by another way.
	Records, Offers, Hints []clustermesh.Origin
}
