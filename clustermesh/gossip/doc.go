// Package gossip keeps this node's replica of the clusterset in sync with those of other nodes. It
// owns the lock, the clock, sockets, goroutines and files: membership (package pool), streams to
// the members that are neighbours (stream), probes (probe), and files (statedir). Package node
// decides what they do. Pool, stream, observe and replica do not import each other.
//
// Inputs are what this node publishes, the gossip key, seeds and a directory for the state. Outputs
// are State, Leader and Problems. Package replica decides which record wins, topology who is a
// neighbour, and trust who is believed; package clustermesh decides what a silent node means. It
// must not know Kubernetes, the datapath or where the content of records comes from.
//
// A daemon counts as heard if it proves on a TLS connection that it has its node's key
// (node/peers.go). One that does not prove it may be new, and have no statement yet: it may request
// one, be a member, and pass on records, which prove themselves, but it is no sign of life. Daemons
// of the version before prove nothing, and their records do not mention it: they count as they did.
// So nodes can be upgraded, and set back, in any order.
//
// memberlist is a rendezvous, no authority: anyone who has the gossip key can send any of its
// messages. What each can move:
//
//	what comes                    with pins                               without pins
//	NotifyAlive: name, UID        a seat among a bounded number           also, whose the cluster's name is
//	NotifyJoin: life, address     the node is asked who it is; where it   where it is dialled and probed
//	                              is dialled if its stated and proven
//	                              addresses fail
//	NotifyLeave                   the node is gone, once its stream       the node is gone
//	                              is silent too
//	NotifyPingComplete            the distance of a node at an address    the distance of a node
//	                              that is its own
//	NotifyUpdate, NotifyMsg,      nothing                                 nothing
//	LocalState, MergeRemoteState
//	a stream without a proof      records, which are judged by their      all that a stream with one can:
//	                              seals; offers and requests, which       there is nothing to prove
//	                              come second; never a sign of life
//	a query                       refused                               answered, to a peer that uses
//	                                                                    a name of this cluster
//	two lives of a node           reported                                reported
//
// An address is a node's own if its record names it, which its root stated, or if a dial to it proved the
// node's key (observe.Contacts.Place). Whose a cluster's name is, its pinned root decides, by the seals.
package gossip
