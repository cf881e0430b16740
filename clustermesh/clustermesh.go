// Package clustermesh holds the vocabulary of a clusterset and the rules that need nothing else:
// who has what, which service records merge into which import, which node is dead.
//
// Inputs are records, each written by one origin; outputs are imports and problems.
// Pure: no clock, no randomness, no logger, no I/O. It must not know the kernel (package datapath)
// nor where records come from (packages kube, manifest, gossip).
package clustermesh

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// ClusterName is a cluster's id in the clusterset: one DNS label (KEP-2149, KEP-1645).
type ClusterName string

// NodeName is the name of a Kubernetes Node within its cluster.
type NodeName string

// ServiceName names a Service, its export and its import alike (KEP-1645 "namespace sameness").
type ServiceName struct {
	Namespace string `cbor:"1,keyasint" json:"namespace"`
	Name      string `cbor:"2,keyasint" json:"name"`
}

func (s ServiceName) String() string { return s.Namespace + "/" + s.Name }

// Compare orders by namespace, then name.
func (s ServiceName) Compare(o ServiceName) int {
	return cmp.Or(strings.Compare(s.Namespace, o.Namespace), strings.Compare(s.Name, o.Name))
}

// ParseServiceName reads "namespace/name".
func ParseServiceName(s string) (ServiceName, error) {
	ns, name, ok := strings.Cut(s, "/")
	if !ok || ns == "" || name == "" || strings.Contains(name, "/") {
		return ServiceName{}, fmt.Errorf("service %q: want NAMESPACE/NAME", s)
	}
	return ServiceName{ns, name}, nil
}

// Origin is the only writer of a record: a node or, if Node is empty, the cluster itself, whose
// leader writes its record.
type Origin struct {
	Cluster ClusterName `cbor:"1,keyasint" json:"cluster"`
	Node    NodeName    `cbor:"2,keyasint,omitempty" json:"node,omitempty"`
}

func (o Origin) String() string {
	if o.Node == "" {
		return string(o.Cluster)
	}
	return string(o.Cluster) + "/" + string(o.Node)
}

// Compare orders by cluster, then node; a cluster's own record comes before its nodes'.
func (o Origin) Compare(p Origin) int {
	return cmp.Or(cmp.Compare(o.Cluster, p.Cluster), cmp.Compare(o.Node, p.Node))
}

// Stamp orders the records of one origin. A new epoch is a new life of the writer, and supersedes
// all earlier records. Stamps of different origins are never compared.
type Stamp struct {
	Epoch   uint64 `cbor:"1,keyasint" json:"epoch"`
	Version uint64 `cbor:"2,keyasint" json:"version"`
}

// Compare orders by epoch, then version.
func (s Stamp) Compare(o Stamp) int {
	return cmp.Or(cmp.Compare(s.Epoch, o.Epoch), cmp.Compare(s.Version, o.Version))
}

func (s Stamp) String() string { return fmt.Sprintf("%d/%d", s.Epoch, s.Version) }

// Locality is a node's location, from the labels topology.kubernetes.io/region and /zone.
type Locality struct {
	Region string `cbor:"1,keyasint,omitempty" json:"region,omitempty"`
	Zone   string `cbor:"2,keyasint,omitempty" json:"zone,omitempty"`
}

// Node is what a node publishes about itself.
type Node struct {
	Name     NodeName `cbor:"1,keyasint" json:"name"`
	Locality Locality `cbor:"2,keyasint" json:"locality"`
	// Addresses are the node's own, reachable on the underlay; the first is the one to use.
	Addresses []netip.Addr `cbor:"3,keyasint,omitempty" json:"addresses,omitempty"`
	// Prefixes cover the addresses of the node's pods, and Inside.
	Prefixes []netip.Prefix `cbor:"4,keyasint,omitempty" json:"prefixes,omitempty"`
	// Inside is an address of the node itself that lies in Prefixes, so that peers accept packets
	// from it. It answers inside the tunnel. It is invalid if the mesh is off.
	Inside netip.Addr `cbor:"5,keyasint" json:"inside"`
	// PublicKey is zero if the mesh is off.
	PublicKey     key.Public `cbor:"6,keyasint" json:"publicKey"`
	WireGuardPort uint16     `cbor:"7,keyasint,omitempty" json:"wireguardPort,omitempty"`
	GossipPort    uint16     `cbor:"8,keyasint,omitempty" json:"gossipPort,omitempty"`
	// Drain takes the node's endpoints out of use.
	Drain *Drain `cbor:"9,keyasint,omitempty" json:"drain,omitempty"`
	// Follower is true if the machine does not have the root of its cluster: it never leads, and signs
	// no statements.
	Follower bool `cbor:"10,keyasint,omitempty" json:"follower,omitempty"`
	// Proves is true if the node's daemon proves with the node's key on each TLS connection who it is.
	// Daemons of the version before do not.
	Proves bool `cbor:"11,keyasint,omitempty" json:"proves,omitempty"`
	// Life names the life of the daemon that wrote the record; zero if the record's epoch does. A
	// clock that was ahead when the daemon started makes its life later than what it shows once the
	// clock is right.
	Life uint64 `cbor:"12,keyasint,omitempty" json:"life,omitempty"`
	// ClusterIPs are those of Prefixes that hold no pods, but ClusterIPs of the node's cluster: the
	// node is the entry to them. Daemons older than this field take them for pods' prefixes, to which
	// they lead packets in the same way.
	ClusterIPs []netip.Prefix `cbor:"13,keyasint,omitempty" json:"clusterIPs,omitempty"`
	// Version is that of the node's daemon, for people only: it decides nothing. Empty if the
	// daemon is older than this field.
	Version string `cbor:"14,keyasint,omitempty" json:"version,omitempty"`
	// Canary is when the node last wrote its record only to let others measure how long that takes
	// to reach them, in Unix milliseconds. It decides nothing. Only the leader of a cluster writes
	// it; 0 for other nodes.
	Canary int64 `cbor:"15,keyasint,omitempty" json:"canary,omitempty"`
	// Speaks is the highest of the levels below that the node's daemon understands. Daemons older
	// than this field understand none.
	Speaks uint8 `cbor:"16,keyasint,omitempty" json:"speaks,omitempty"`
	// Relay is whether the node may be a relay, or should be.
	Relay RelayUse `cbor:"17,keyasint,omitempty" json:"relay,omitempty"`
}

// LabelRelay is the label of a Node with its RelayUse, or "auto".
const LabelRelay = "strait.io/relay"

// RelayUse is whether a node passes records on to others in a large clusterset; see package topology.
type RelayUse string

// The values of RelayUse.
const (
	// RelayAuto: if it is chosen.
	RelayAuto RelayUse = ""
	// RelayNever: not if there is any other node, for a machine that is small, or whose traffic is paid
	// for.
	RelayNever RelayUse = "never"
	// RelayOnly: in a cluster that has such nodes, no others are relays.
	RelayOnly RelayUse = "only"
)

// ParseRelayUse reads auto, never or only; empty is auto.
func ParseRelayUse(text string) (RelayUse, error) {
	switch use := RelayUse(text); use {
	case "auto":
		return RelayAuto, nil
	case RelayAuto, RelayNever, RelayOnly:
		return use, nil
	}
	return RelayAuto, fmt.Errorf("%s is none of auto, never, only", Quoted(text))
}

// SpeaksFew is the level from which a daemon knows that few nodes of a large cluster decide about
// the others; see Deciders.
const SpeaksFew = 1

// SpeaksRelays is the level from which a daemon knows that relays pass records on, so that it needs
// no stream to each other daemon; see package topology.
const SpeaksRelays = 2

// ServiceType is the type of an import (mcs-api ServiceImportType).
type ServiceType string

// The two types of the MCS API.
const (
	ClusterSetIP ServiceType = "ClusterSetIP"
	Headless     ServiceType = "Headless"
)

// ServicePort is a port of a Service, without its target port: each endpoint has its own.
type ServicePort struct {
	Name        string   `cbor:"1,keyasint,omitempty" json:"name,omitempty"`
	Proto       l4.Proto `cbor:"2,keyasint" json:"protocol"`
	Port        uint16   `cbor:"3,keyasint" json:"port"`
	AppProtocol string   `cbor:"4,keyasint,omitempty" json:"appProtocol,omitempty"`
}

func (p ServicePort) String() string {
	s := fmt.Sprintf("%d/%s", p.Port, p.Proto)
	if p.Name != "" {
		s = p.Name + ":" + s
	}
	return s
}

// Is reports whether two clusters' ports are the same port: the same name, protocol and number.
// Only then does traffic to one reach the other ("strict port conflict", KEP-1645).
func (p ServicePort) Is(q ServicePort) bool {
	return p.Name == q.Name && p.Proto == q.Proto && p.Port == q.Port
}

// Export is one cluster's Service for which a ServiceExport exists.
type Export struct {
	Service ServiceName   `cbor:"1,keyasint" json:"service"`
	Type    ServiceType   `cbor:"2,keyasint" json:"type"`
	Ports   []ServicePort `cbor:"3,keyasint" json:"ports"`
	// Created is the ServiceExport's creation time in Unix seconds: the oldest export wins a
	// conflict.
	Created int64 `cbor:"4,keyasint" json:"created"`
	// AffinitySeconds is the ClientIP session affinity time-out; 0 means none.
	AffinitySeconds uint32 `cbor:"5,keyasint,omitempty" json:"affinitySeconds,omitempty"`
	// InternalTrafficPolicy is "Cluster" or "Local"; empty is Cluster.
	InternalTrafficPolicy string `cbor:"6,keyasint,omitempty" json:"internalTrafficPolicy,omitempty"`
	// TrafficDistribution is a hint as in a Service's spec: "PreferSameZone", "PreferSameNode",
	// "PreferClose" or empty.
	TrafficDistribution string `cbor:"7,keyasint,omitempty" json:"trafficDistribution,omitempty"`
	// Families are the Service's IP families, the preferred one first.
	Families []Family `cbor:"8,keyasint,omitempty" json:"ipFamilies,omitempty"`
	// Labels and Annotations are the ServiceExport's exportedLabels and exportedAnnotations. No
	// others leave the cluster (KEP-1645).
	Labels      map[string]string `cbor:"9,keyasint,omitempty" json:"labels,omitempty"`
	Annotations map[string]string `cbor:"10,keyasint,omitempty" json:"annotations,omitempty"`
	// FamiliesDeclared is true if the Service itself declares Families. Otherwise they are those of
	// its endpoints, which can come and go, or the daemon is older than this field.
	FamiliesDeclared bool `cbor:"11,keyasint,omitempty" json:"ipFamiliesDeclared,omitempty"`
	// Routing is nil if the Service asks for nothing. It applies to the clients of its cluster, and
	// that of the oldest export to those of clusters that ask for nothing themselves.
	Routing *Routing `cbor:"12,keyasint,omitempty" json:"routing,omitempty"`
	// To are the clusters that import it, sorted; empty means all. Daemons older than this field
	// import it in any case.
	To []ClusterName `cbor:"13,keyasint,omitempty" json:"to,omitempty"`
	// Policy is the ServicePolicy that shares the Service; empty if a ServiceExport does. It is for
	// people only.
	Policy string `cbor:"14,keyasint,omitempty" json:"policy,omitempty"`
	// IPs are the Service's ClusterIPs, if a policy that mirrors leads to them. Daemons older than
	// this field have no such policies.
	IPs []netip.Addr `cbor:"15,keyasint,omitempty" json:"ips,omitempty"`
}

// For reports whether a cluster imports an export.
func (e Export) For(c ClusterName) bool { return len(e.To) == 0 || slices.Contains(e.To, c) }

// Family is the Kubernetes name of an IP family.
type Family string

// The IP families.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// FamilyOf returns the family of an address; a v4-mapped address is IPv4.
func FamilyOf(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// Global is one cluster's Service that an annotation makes a global service: its own ClusterIPs
// reach the backends of the same Service in every cluster that shares it.
type Global struct {
	Service ServiceName   `cbor:"1,keyasint" json:"service"`
	Ports   []ServicePort `cbor:"2,keyasint" json:"ports"`
	// IPs are the Service's ClusterIPs. They are meaningful only in its own cluster.
	IPs []netip.Addr `cbor:"3,keyasint,omitempty" json:"ips,omitempty"`
	// Shared is false if other clusters must not use this cluster's endpoints.
	Shared bool `cbor:"4,keyasint,omitempty" json:"shared"`
	// Affinity is which endpoints this cluster's clients prefer.
	Affinity GlobalAffinity `cbor:"5,keyasint,omitempty" json:"affinity,omitempty"`
	// AffinitySeconds is the ClientIP session affinity time-out; 0 means none.
	AffinitySeconds uint32 `cbor:"6,keyasint,omitempty" json:"affinitySeconds,omitempty"`
	// InternalTrafficPolicy and TrafficDistribution are as in Export. They apply to this cluster's
	// clients.
	InternalTrafficPolicy string `cbor:"7,keyasint,omitempty" json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   string `cbor:"8,keyasint,omitempty" json:"trafficDistribution,omitempty"`
	// Routing is nil if the Service asks for nothing. It applies to this cluster's clients; its Drain
	// applies to everybody's.
	Routing *Routing `cbor:"9,keyasint,omitempty" json:"routing,omitempty"`
	// To are the clusters that may use this cluster's endpoints if it shares them, and From those
	// whose endpoints its own clients use, both sorted. Empty means all. Daemons older than these
	// fields do not know them.
	To   []ClusterName `cbor:"10,keyasint,omitempty" json:"to,omitempty"`
	From []ClusterName `cbor:"11,keyasint,omitempty" json:"from,omitempty"`
	// Policy is the ServicePolicy that makes the Service global; empty if an annotation does. It is
	// for people only.
	Policy string `cbor:"12,keyasint,omitempty" json:"policy,omitempty"`
	// Slices is set if the Service asks for EndpointSlices with the other clusters' endpoints. Only its
	// own cluster's leader reads it.
	Slices *GlobalSlices `cbor:"-" json:"-"`
}

// GlobalSlices describes EndpointSlices that a global service asks for: those of its IP families,
// which are deleted with the Service of this UID.
type GlobalSlices struct {
	UID      string
	Families []Family
}

// Equal reports whether both are nil, or the same.
func (s *GlobalSlices) Equal(o *GlobalSlices) bool {
	return s == o || s != nil && o != nil && s.UID == o.UID && slices.Equal(s.Families, o.Families)
}

// Offers reports whether a cluster's clients may use the endpoints of another cluster's global
// service.
func (g Global) Offers(to ClusterName) bool {
	return g.Shared && (len(g.To) == 0 || slices.Contains(g.To, to))
}

// Takes reports whether the clients of a global service use the endpoints of a cluster.
func (g Global) Takes(from ClusterName) bool {
	return len(g.From) == 0 || slices.Contains(g.From, from)
}

// The values of a Service's traffic policy and distribution that strait knows (core/v1).
// PreferClose is the old name of PreferSameZone.
const (
	PolicyCluster  = "Cluster"
	PolicyLocal    = "Local"
	PreferSameNode = "PreferSameNode"
	PreferSameZone = "PreferSameZone"
	PreferClose    = "PreferClose"
)

// GlobalAffinity is which clusters a global service's clients prefer.
type GlobalAffinity string

// The affinities of global services. AffinityUnset follows locality, as other services do.
const (
	AffinityUnset  GlobalAffinity = ""
	AffinityNone   GlobalAffinity = "none"   // all ready endpoints of all clusters, equally
	AffinityLocal  GlobalAffinity = "local"  // this cluster's endpoints while one is ready
	AffinityRemote GlobalAffinity = "remote" // other clusters' endpoints while one is ready
)

// Allocation is the ClusterSetIP that a cluster gave to an import.
type Allocation struct {
	Service ServiceName `cbor:"1,keyasint" json:"service"`
	IP      netip.Addr  `cbor:"2,keyasint" json:"ip"`
}

// Silence is a witness's claim that gossip has lost a node and that its machine does not answer.
type Silence struct {
	Origin Origin `cbor:"1,keyasint" json:"origin"`
	// Epoch identifies the life of the node that went silent. The claim does not extend to a later
	// life.
	Epoch uint64 `cbor:"2,keyasint" json:"epoch"`
}

// Content is everything that one origin publishes. Node, Endpoints, Silent and GossipKeys come from nodes;
// the other fields, and the Endpoints that name no node, come from the cluster's leader. Package
// record has a row for each field, and refuses a field without one.
type Content struct {
	Node        *Node        `cbor:"1,keyasint,omitempty" json:"node,omitempty"`
	Endpoints   []Endpoint   `cbor:"2,keyasint,omitempty" json:"endpoints,omitempty"`
	Exports     []Export     `cbor:"3,keyasint,omitempty" json:"exports,omitempty"`
	Allocations []Allocation `cbor:"4,keyasint,omitempty" json:"allocations,omitempty"`
	Silent      []Silence    `cbor:"5,keyasint,omitempty" json:"silent,omitempty"`
	Globals     []Global     `cbor:"6,keyasint,omitempty" json:"globals,omitempty"`
	// Nodes are the names of the cluster's Node objects, sorted; see Left. It is empty if they are
	// unknown: the source is not an API server, or the leader runs a build that does not list them.
	Nodes []NodeName `cbor:"7,keyasint,omitempty" json:"nodes,omitempty"`
	// Drain takes all endpoints of the cluster out of use; a leader writes it.
	Drain *Drain `cbor:"22,keyasint,omitempty" json:"drain,omitempty"`
	// Drains are those of the cluster's nodes, by name. A leader writes them too, because a node whose
	// daemon is down may not be drained now.
	Drains []NodeDrain `cbor:"24,keyasint,omitempty" json:"drains,omitempty"`
	// AsOf is when a leader wrote this last, at intervals of AsOfPeriod, in Unix seconds: the
	// cluster had these exports then, and no others. It is 0 in records of older builds.
	AsOf int64 `cbor:"20,keyasint,omitempty" json:"asOf,omitempty"`
	// Mirrors are the Services that ServicePolicies share under plain names: one for each Service and
	// policy. They are no imports. Labels are those that the policy copies. Older builds leave them
	// out.
	Mirrors []Export `cbor:"25,keyasint,omitempty" json:"mirrors,omitempty"`
	// Results are what the cluster has made of other clusters' Services by its policies, sorted by
	// policy. They are for people only. Older builds leave them out.
	Results []PolicyResult `cbor:"27,keyasint,omitempty" json:"results,omitempty"`
	// Config are objects of the cluster's API server for clusters that accept its configuration;
	// others leave them out. Older builds do, too.
	Config []ConfigObject `cbor:"28,keyasint,omitempty" json:"config,omitempty"`
	// Late are the exports of all clusters that are younger than they claim; see State.Late.
	Late []Late `cbor:"21,keyasint,omitempty" json:"late,omitempty"`
	// Revoked are fingerprints of keys of the cluster's nodes that count no more, whatever the cluster
	// stated of them. Older builds leave it out.
	Revoked []string `cbor:"26,keyasint,omitempty" json:"revoked,omitempty"`
	// Withdrawn are the statements about the cluster's nodes that count no more, sorted. Older builds
	// leave it out.
	Withdrawn []Withdrawal `cbor:"29,keyasint,omitempty" json:"withdrawn,omitempty"`
	// GossipKeys are fingerprints of the gossip keys that a node accepts. It uses the first. Older
	// builds leave it out.
	GossipKeys []string `cbor:"23,keyasint,omitempty" json:"gossipKeys,omitempty"`
}

// Record is an origin's whole snapshot. What is absent from it is gone. Immutable once published.
type Record struct {
	Origin  Origin  `cbor:"1,keyasint" json:"origin"`
	Stamp   Stamp   `cbor:"2,keyasint" json:"stamp"`
	Content Content `cbor:"3,keyasint" json:"content"`
	// UID distinguishes the origin's cluster from another one of the same name. It is empty if the cluster
	// has no API server.
	UID string `cbor:"4,keyasint,omitempty" json:"uid,omitempty"`
	// Problems describe what was left out of Content because it cannot be used. Every node finds
	// them by itself, so they are not on the wire.
	Problems []Problem `cbor:"-" json:"-"`
	// Late are those of the cluster's exports that are younger than they claim, as this node has
	// seen. They are not on the wire.
	Late []Late `cbor:"-" json:"-"`
	// Unasked counts the objects of Content.Config that were left out because this cluster does not
	// accept the origin's configuration. It is not on the wire.
	Unasked int `cbor:"-" json:"-"`
	// KeyProven is true if the node proved that it has the private key of Content.Node.PublicKey. It is
	// not on the wire.
	KeyProven bool `cbor:"-" json:"-"`
}

// ExportStatus is the verdict on one ServiceExport, for its conditions Valid and Ready (MCS API).
type ExportStatus struct {
	Service ServiceName
	// Alias is the kind of an export of another API group, such as "ServiceExport.net.gke.io";
	// empty for a ServiceExport of the MCS API. strait writes the conditions of aliases of some groups
	// only: see package mcs.
	Alias string
	// Valid is false if there is no Service that can be exported: Reason is then "NoService" or
	// "InvalidServiceType".
	Valid bool
	// Exported is true if the export is in Local.Exports. A valid export that is not there has
	// Reason "Failed": its namespace is barred, or its name or ports cannot be used.
	Exported bool
	// Reason is "Valid" and Message is empty for an export in force. Otherwise both give why it is
	// not exported.
	Reason  string
	Message string
	// Omitted lists the exported labels and annotations that were left out, with the reason unless
	// they are malformed.
	Omitted string
	// NotBalanced lists the ports that a ClusterSetIP does not serve, because their protocol is
	// neither TCP nor UDP.
	NotBalanced string
}

// Local is what a cluster's own source (a directory of YAML, or an API server) has about the
// cluster.
type Local struct {
	Nodes []Node
	// NodesKnown is true if Nodes lists every node of the cluster. A directory of YAML may list
	// only some.
	NodesKnown bool
	// NodePrefixes are the prefixes from the annotation strait.io/prefixes of Node objects. Unless
	// the daemon's configuration gives the node prefixes, it answers for exactly these.
	NodePrefixes map[NodeName][]netip.Prefix
	// NodeClusterIPs are the ranges of ClusterIPs from the annotation strait.io/cluster-ips of Node
	// objects: each of these nodes is the entry to them for other clusters.
	NodeClusterIPs map[NodeName][]netip.Prefix
	// ClusterIPs are ranges that hold the ClusterIPs of all the cluster's Services, as narrow as these
	// tell, sorted.
	ClusterIPs []netip.Prefix
	// NodeKeys are the fingerprints from the annotation strait.io/node-key of Node objects.
	NodeKeys map[NodeName]string
	Exports  []Export
	Globals  []Global
	// Mirrors are as in Content, sorted by Service and policy.
	Mirrors   []Export
	Endpoints []Endpoint
	// Config are as in Content, sorted by kind and name.
	Config []ConfigObject
	// Shares are what the cluster's policies share, sorted by policy.
	Shares []Share
	// ExportStatus has one verdict per Service with a ServiceExport or an alias of one, exported or
	// not, sorted by service.
	ExportStatus []ExportStatus
	// Allocations are the ClusterSetIPs that the source itself gives out: the ClusterIPs of derived
	// Services.
	Allocations []Allocation
	// Namespaces are the cluster's namespaces, sorted. Nil means that every namespace counts as
	// existing.
	Namespaces []string
	// OwnNamespaces are those that a Namespace or a Service of the cluster itself is in, sorted: not
	// those that only other clusters' exports name.
	OwnNamespaces []string
	// Accept is which clusters' Services some namespaces accept.
	Accept Accept
	// LocalNamespaces are those that neither share Services with other clusters nor take any.
	LocalNamespaces LocalNamespaces
	// Drain takes all endpoints of the cluster out of use.
	Drain    *Drain
	Problems []Problem
}
