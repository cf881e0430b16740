// Package topology decides which daemons of a clusterset keep streams to each other, which way records
// and packets travel, and what nodes do for others on these ways.
//
// Inputs are a node, the members that it sees and the records that it has to pass on. Outputs are nodes.
// All is a pure function of these, so daemons that see the same members agree without a message. It
// must not know how streams or tunnels are made, nor what is in a record. A topology is one file: a type
// that implements Topology, as FullMesh does.
package topology

import "strait.io/strait/clustermesh"

// Topology is one answer for a whole clusterset. Members are live daemons, or live nodes that tunnels can
// lead to, in any order. Self is one of them, even if it is not listed.
type Topology interface {
	// Neighbours returns the members to which a daemon keeps a stream, the only ones with which it exchanges
	// records. It must be symmetric: both ends of a stream keep it, and either can dial. The
	// graph over all members must be connected: otherwise records do not reach every member.
	Neighbours(self clustermesh.Origin, members []clustermesh.Origin) []clustermesh.Origin
	// Spread returns which neighbours are sent new records, and which only get their versions, so that they
	// can ask. If it has a choice, it takes the first neighbours.
	Spread(self clustermesh.Origin, news News, neighbours []clustermesh.Origin) Spread
	// NextHop returns where self sends the packets for other nodes: to the node itself, or to a gateway. The
	// way back must lead through the same nodes, because a tunnel only accepts packets of those that it leads
	// to.
	NextHop(self clustermesh.Origin, members []clustermesh.Origin) func(to clustermesh.Origin) clustermesh.Origin
	// Roles returns what a node does for others.
	Roles(self clustermesh.Origin, members []clustermesh.Origin) Roles
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

// News are records that are new to a daemon.
type News struct {
	// From is the peer that sent them; zero if they were written here.
	From clustermesh.Origin
	// Writers are the origins of the records.
	Writers []clustermesh.Origin
	// Repaired is true if they were asked for, so that most other daemons have them.
	Repaired bool
}

// Spread is where news go.
type Spread struct {
	// Records are sent the records, and Offers their versions.
	Records, Offers []clustermesh.Origin
}
