// Package api is the contract between a daemon and those that ask it: the answers (types.go,
// answer.go), why there is none (failure.go), and what follows from answers alone.
//
// Inputs are what package daemon knows; outputs are values with a form in JSON. It must not know how
// answers are computed, who carries them (server, client), nor how they are shown (table).
package api

import (
	"net/netip"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// APIVersion is in every JSON answer. Within one version, fields are only ever added.
const APIVersion = "cli.strait.io/v1"

// DefaultSocket is where straitd serves the API unless runDir is set.
const DefaultSocket = "/run/strait/strait.sock"

// Status is the one-screen summary of a node's daemon.
type Status struct {
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	Version string `json:"version"`
	// Time is when the answer was computed; Applied when the kernel last matched the plan.
	Time    time.Time `json:"time"`
	Applied time.Time `json:"applied"`
	// Ready is true once maps are restored, hooks attached and the first plan applied.
	Ready bool `json:"ready"`
	// Waiting is what the daemon is waiting for while it is not ready or must not prune.
	Waiting []string `json:"waiting,omitempty"`
	Leader  bool     `json:"leader"`
	// Origins counts the writers whose records this node holds: nodes, and each cluster for its
	// leader's record.
	Origins  int       `json:"origins"`
	Clusters []Cluster `json:"clusters"`
	Datapath Datapath  `json:"datapath"`
	// Writing is set while the leader has many imports to write to its API server, for example as
	// the first leader.
	Writing *Writing `json:"writing,omitempty"`
	// Unwritten counts the services with objects that the leader has yet to write to its API
	// server, or could not write.
	Unwritten int `json:"unwritten,omitempty"`
	// Refused counts what came to the gossip port and was refused since the daemon started, by kind.
	Refused map[string]uint64 `json:"refused,omitempty"`
	// Authority is whom the node trusts: see AuthorityPinned.
	Authority string `json:"authority,omitempty"`
	// StatementEnds is when the root's statement about this node's key expires; zero if there is none.
	StatementEnds time.Time         `json:"statementEnds,omitzero"`
	Problems      []problem.Problem `json:"problems"`
}

// Whom a node trusts.
const (
	// AuthorityPinned: only that of clusters which are pinned.
	AuthorityPinned = "pinned"
	// AuthorityEverybody: every holder of the gossip key. AuthorityOff: likewise, by configuration.
	AuthorityEverybody = "everybody"
	AuthorityOff       = "off"
)

// Writing is a leader's progress in writing to its API server.
type Writing struct {
	// Done is how many of Total imports are written.
	Done  int `json:"done"`
	Total int `json:"total"`
	// Began is when the leader began to write them.
	Began time.Time `json:"began"`
}

// Left estimates how long the rest takes at the pace so far; 0 if that is not known yet.
func (w Writing) Left(now time.Time) time.Duration {
	if w.Done == 0 {
		return 0
	}
	return time.Duration(float64(now.Sub(w.Began)) / float64(w.Done) * float64(w.Total-w.Done))
}

// Cluster is one cluster of the set, as this node sees it.
type Cluster struct {
	Name string `json:"name"`
	// State is one of the constants below.
	State ClusterState `json:"state"`
	// Drained is which part of the cluster's share a drain has taken, 0 to 1.
	Drained float64 `json:"drained,omitempty"`
	// Open counts the open sockets of this node that are connected to a drained cluster through a
	// Service; missing if the cluster is not drained, or if they could not be counted.
	Open *int `json:"open,omitempty"`
	// Alive is how many of Nodes gossip hears. Dead is how many are withdrawn.
	Nodes int `json:"nodes"`
	Alive int `json:"alive"`
	Dead  int `json:"dead"`
	// Exports counts exported services, Endpoints their endpoints, of which EndpointsIPv6 have an
	// IPv6 address. A pod of both families is two endpoints.
	Exports       int `json:"exports"`
	Endpoints     int `json:"endpoints"`
	EndpointsIPv6 int `json:"endpointsIPv6,omitempty"`
	// Config counts the cluster's objects that this one carries out as if they were its own, and
	// ConfigLeftOut those that it would if it accepted the cluster's configuration.
	Config        int `json:"config,omitempty"`
	ConfigLeftOut int `json:"configLeftOut,omitempty"`
	// Heard is when gossip last heard a node of the cluster; zero if not since the daemon started.
	Heard time.Time `json:"heard,omitzero"`
	// RTT is the shortest round-trip time to a node of another cluster, as gossip measures it outside the
	// tunnels, in milliseconds; 0 if unknown.
	RTT float64 `json:"rtt,omitempty"`
	// Tunnels is missing for this node's own cluster, and if none leads to the cluster.
	Tunnels *Tunnels `json:"tunnels,omitempty"`
}

// ClusterState is the state of a cluster as this node sees it.
type ClusterState string

// The states of a cluster. Only joined clusters and the node's own are heard now. The last records of
// the others are kept, since unknown is not empty.
const (
	// Here is this node's own cluster.
	Here ClusterState = "here"
	// Joined: at least one of its daemons is heard now.
	Joined ClusterState = "joined"
	// Quiet: none of its daemons is heard, but at least one of its machines answers.
	Quiet ClusterState = "quiet"
	// Held: nothing of it is heard or answers.
	Held ClusterState = "held"
)

// Datapath is what the kernel of the node holds and can do.
type Datapath struct {
	Attached  bool   `json:"attached"`
	Cgroup    string `json:"cgroup"`
	Pins      string `json:"pins"`
	Frontends int    `json:"frontends"`
	Backends  int    `json:"backends"`
	// Mesh is "kernel", "userspace", "off" as configured, or "down" if the device could not be
	// created yet.
	Mesh     string             `json:"mesh"`
	Features []datapath.Feature `json:"features"`
	// Maps are how full the kernel's maps are.
	Maps []datapath.MapUsage `json:"maps,omitempty"`
	// Foreign are socket programs of other software on the same path. The list may be some seconds
	// old.
	Foreign []datapath.ForeignProgram `json:"foreign,omitempty"`
	// Sockets counts what the programs noticed about sockets, and what was freed for them.
	Sockets Sockets `json:"sockets,omitzero"`
	// Destroyed counts the sockets to removed backends that this daemon closed since it started.
	Destroyed Destroyed `json:"destroyed,omitzero"`
	// Dropped counts packets since the daemon started.
	Dropped Dropped `json:"dropped,omitzero"`
}

// Dropped counts packets that other clusters sent through the tunnel and that did not pass, because
// they are neither for pods nor answers.
type Dropped struct {
	// Untracked are of connections that another program keeps the kernel from tracking, so that no
	// answer to the node is known as one.
	Untracked uint64 `json:"untracked"`
	Refused   uint64 `json:"refused"`
}

// Sockets counts events of sockets, not of services.
type Sockets struct {
	// Lost are choices of a backend that could not be remembered: the program sees the backend's
	// address as its peer.
	Lost uint64 `json:"lost"`
	// Bound are TCP connections to a frontend by sockets that are bound to a source port.
	Bound uint64 `json:"bound"`
	// Swept are sockets that ended without a hook, and whose records this daemon freed.
	Swept uint64 `json:"swept"`
}

// Destroyed counts sockets by protocol.
type Destroyed struct {
	UDP uint64 `json:"udp"`
	TCP uint64 `json:"tcp"`
}

// Service is one import or global service: where its new connections go from this node, and why.
type Service struct {
	// Name is "namespace/name".
	Name string `json:"name"`
	// Type is "ClusterSetIP", "Headless" or "Global".
	Type      string       `json:"type"`
	IPs       []netip.Addr `json:"ips,omitempty"`
	Exporters []string     `json:"exporters"`
	// Policies are those that share it, as "POLICY of CLUSTER"; the exporters without one have a
	// ServiceExport, or an annotation.
	Policies  []string   `json:"policies,omitempty"`
	Frontends []Frontend `json:"frontends"`
}

// Frontend is one address and port of a service, with every endpoint considered for it.
type Frontend struct {
	Addr l4.Addr `json:"addr"`
	// Port is the Service port's name, if it has one.
	Port string `json:"port,omitempty"`
	// Tier is the one in use: "node", "zone", "region", "cluster", "clusterset", "unreachable"
	// (clusters that are not heard, as the last resort), or "" if none is in use.
	Tier      string     `json:"tier"`
	Endpoints []Endpoint `json:"endpoints"`
	// InKernel is false when the kernel's map differs from the plan.
	InKernel bool `json:"inKernel"`
	// Ahead names programs of other software that run before strait's. If they belong to a load
	// balancer that knows the address, that chooses instead of strait, whatever the kernel's map has.
	Ahead []string `json:"ahead,omitempty"`
	// Connects and Refused count connections since the frontend was added to the kernel's map:
	// those that got a backend, and those that found none. For an unconnected UDP socket, Connects
	// counts each choice of a backend.
	Connects uint64 `json:"connects"`
	Refused  uint64 `json:"refused"`
}

// Endpoint is one candidate. It is in use if its Share is above 0; Reason is why or why not.
type Endpoint struct {
	Addr    netip.AddrPort `json:"addr"`
	Cluster string         `json:"cluster"`
	Node    string         `json:"node,omitempty"`
	Pod     string         `json:"pod,omitempty"`
	Zone    string         `json:"zone,omitempty"`
	Region  string         `json:"region,omitempty"`
	Tier    string         `json:"tier"`
	Ready   bool           `json:"ready"`
	// Weight is what the kernel holds. Share is its part of new connections, 0…1.
	Weight uint32  `json:"weight"`
	Share  float64 `json:"share"`
	Reason string  `json:"reason"`
	// RTT is the round-trip time to its node in milliseconds; 0 for the own cluster, or if unknown.
	RTT float64 `json:"rtt,omitempty"`
	// Drained is which part of its share a drain has taken, 0 to 1.
	Drained float64 `json:"drained,omitempty"`
	// Connects counts the connections that it got through this frontend since it became a backend
	// of it.
	Connects uint64 `json:"connects"`
}

// Node is one machine of the clusterset.
type Node struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Contact is "self", "alive", "reported" (relays hear its cluster, and others its daemon), "quiet"
	// (daemon down, machine answers), "silent" or "held".
	Contact string `json:"contact"`
	// Dead is true when its own cluster declared it dead. Its endpoints are then withdrawn.
	Dead bool `json:"dead"`
	// Witnesses are the nodes that claim it silent.
	Witnesses []string       `json:"witnesses,omitempty"`
	Region    string         `json:"region,omitempty"`
	Zone      string         `json:"zone,omitempty"`
	Addresses []netip.Addr   `json:"addresses"`
	Prefixes  []netip.Prefix `json:"prefixes"`
	// ClusterIPs are those of the prefixes that hold ClusterIPs, to which the node is the entry.
	ClusterIPs []netip.Prefix `json:"clusterIPs,omitempty"`
	Endpoints  int            `json:"endpoints"`
	Stamp      string         `json:"stamp"`
	Heard      time.Time      `json:"heard,omitzero"`
	// Version is that of its daemon; empty if that is too old to publish it.
	Version string  `json:"version,omitempty"`
	Tunnel  *Tunnel `json:"tunnel,omitempty"`
	// Peer is the node as a WireGuard peer of the nodes of other clusters.
	Peer *Peer `json:"peer,omitempty"`
}

// Peer is what other machines must know of a node to have a tunnel to it, from the daemon's mesh. It holds no
// secret.
type Peer struct {
	PublicKey key.Public `json:"publicKey,omitzero"`
	// Endpoint is the node's outer UDP address.
	Endpoint netip.AddrPort `json:"endpoint,omitzero"`
	// AllowedIPs are the addresses of its pods and its own inside the tunnel, sorted: not of what is reached
	// through it.
	AllowedIPs []netip.Prefix `json:"allowedIPs,omitempty"`
	// NoTunnel is why no tunnel can lead to the node; empty if one can.
	NoTunnel string `json:"noTunnel,omitempty"`
}

// NodeTunnels are the tunnels of one node to others of the clusterset. Which it has follows from
// the topology.
type NodeTunnels struct {
	// Node is CLUSTER/NODE, as are all names of nodes in here.
	Node string `json:"node"`
	// Tunnels are sorted by where they lead.
	Tunnels []TunnelTo `json:"tunnels,omitempty"`
}

// TunnelTo is where a tunnel leads.
type TunnelTo struct {
	Node string `json:"node"`
	// Reached are the nodes that are reached through the tunnel, sorted. It is empty if that is Node alone.
	Reached []string `json:"reached,omitempty"`
}

// Reaches returns the names of the nodes that are reached through the tunnel.
func (t TunnelTo) Reaches() []string {
	if len(t.Reached) == 0 {
		return []string{t.Node}
	}
	return t.Reached
}

// Tunnel is the WireGuard peer of a node in another cluster.
type Tunnel struct {
	Underlay  netip.AddrPort `json:"underlay"`
	Handshake time.Time      `json:"handshake,omitzero"`
	Sent      int64          `json:"sentBytes"`
	Received  int64          `json:"receivedBytes"`
	// State is what the tunnel carries according to probes: "unknown", "carrying", "lossy" (some
	// packets are lost), "narrow" (large packets are lost), "returning" (it carried nothing until
	// Since, and is not relied on yet), "one-way" (nothing arrives at the node), "silent" (nothing
	// comes from there) or "never" (no handshake was answered). It is empty if the node is not
	// probed.
	State string `json:"state,omitempty"`
	// Since is when the tunnel began to be up, down or returning.
	Since time.Time `json:"since,omitzero"`
	// RTT is the round-trip time inside the tunnel in milliseconds, and Loss which part of the last probes
	// was lost, 0 to 1.
	RTT  float64 `json:"rtt,omitempty"`
	Loss float64 `json:"loss,omitempty"`
}

// TunnelStates are the values of Tunnel.State.
var TunnelStates = []string{"unknown", "carrying", "lossy", "narrow", "returning", "one-way", "silent", "never"}

// Tunnels sum up what the tunnels of this node to the nodes of a cluster carry.
type Tunnels struct {
	// States counts them by Tunnel.State.
	States map[string]int `json:"states"`
	// RTT is the longest round-trip time in milliseconds, and Loss the largest of all.
	RTT  float64 `json:"rtt,omitempty"`
	Loss float64 `json:"loss,omitempty"`
}
