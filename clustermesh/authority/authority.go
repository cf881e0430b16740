// Package authority decides what an origin may publish. A cluster has a root key. The root signs a
// statement about each of its nodes, and each node signs its own record. A cluster pins the roots of
// the others, and what it accepts from each.
//
// Inputs are pins, signed statements, signed records and the time, all as arguments. Outputs are the
// part of a record that its origin may publish, and Problems about the rest. Pure: it reads no files and
// no clock, and it must not know how records travel (packages replica and gossip) or what the plan
// makes of them.
package authority

import (
	"net/netip"
	"time"

	"strait.io/strait/clustermesh"
)

// Pin is what this cluster accepts from another cluster. An operator confirms it when the clusters
// are connected.
type Pin struct {
	Cluster clustermesh.ClusterName `json:"cluster"`
	// UID is the UID of the cluster's API server; empty if it has none.
	UID string `json:"uid,omitempty"`
	// Roots are the public keys that may sign for the cluster: one, or two while it is rotated.
	Roots []PublicKey `json:"roots"`
	// Pods contain the addresses of the cluster's pods, and Nodes those of its machines.
	Pods  []netip.Prefix `json:"pods,omitempty"`
	Nodes []netip.Prefix `json:"nodes,omitempty"`
	// Endpoints contain, besides Pods, the addresses of its endpoints that name no node: machines that
	// its selectorless Services lead to. A user who may write EndpointSlices there can lead clients to
	// any of these addresses.
	Endpoints []netip.Prefix `json:"endpoints,omitempty"`
	// Regions and Zones are those that the cluster's nodes can be in; "" is that of nodes without the
	// label. A node that claims to be near attracts traffic. An empty list allows all.
	Regions []string `json:"regions,omitempty"`
	Zones   []string `json:"zones,omitempty"`
	// Namespaces are patterns of the namespaces whose Services are accepted from it. Empty accepts
	// none.
	Namespaces []string `json:"namespaces,omitempty"`
	// Joined is when the cluster became a member; zero if unknown. Its older exports are treated as
	// created then, so that a new member takes over no name.
	Joined time.Time `json:"joined,omitzero"`
	// Revoked are the fingerprints of revoked keys of its nodes. A cluster's leader publishes those in
	// the cluster's own pin.
	Revoked []string `json:"revoked,omitempty"`
	Quota   Quota    `json:"quota,omitzero"`
}

// Quota bounds what one cluster can make others store. A zero field has its default.
type Quota struct {
	// Nodes is the number of nodes.
	Nodes int `json:"nodes,omitempty"`
	// Endpoints is per record.
	Endpoints int `json:"endpoints,omitempty"`
	// Exports is how many Services of it become imports with a ClusterSetIP here, and how many headless
	// ones: Services with ClusterIPs, where they are derived. If the pin sets it, it also bounds the sum
	// of exports, mirrored and global Services.
	Exports int `json:"exports,omitempty"`
}

// DefaultQuota is above what one cluster of 1,000 nodes needs; but Exports is so low that the clusters of a
// clusterset together do not fill a range of ClusterIPs, which no quota of a tenant bounds.
var DefaultQuota = Quota{Nodes: 5_000, Endpoints: 20_000, Exports: 500}

// maxShared bounds the sum of a record's exports, mirrored and global Services if the pin of its
// cluster does not set Exports: they cost memory.
const maxShared = 20_000

// WithDefaults returns the quota with the defaults for the fields that are zero.
func (q Quota) WithDefaults() Quota {
	for _, f := range []struct {
		set *int
		to  int
	}{{&q.Nodes, DefaultQuota.Nodes}, {&q.Endpoints, DefaultQuota.Endpoints}, {&q.Exports, DefaultQuota.Exports}} {
		if *f.set == 0 {
			*f.set = f.to
		}
	}
	return q
}

// Self is the receiver: its own cluster, and the addresses that no other cluster can have.
type Self struct {
	Cluster clustermesh.ClusterName
	// Own are the ranges of this cluster's pods and Services, and of ClusterSetIPs.
	Own []netip.Prefix
	// Machines are addresses of this cluster's nodes, in a range that it may share with the machines of
	// other clusters: no endpoint of another cluster has one.
	Machines map[netip.Addr]bool
	// Accept takes precedence over the namespaces of pins.
	Accept clustermesh.Accept
	// LocalNamespaces accept nothing, unless they are in Accept.
	LocalNamespaces clustermesh.LocalNamespaces
	// ConfigFrom are the other clusters whose configuration it accepts.
	ConfigFrom []clustermesh.ClusterName
}

// MaxAhead is how far ahead of the receiver's clock a stamp or a statement may be.
const MaxAhead = 10 * time.Minute
