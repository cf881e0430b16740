package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// States of clusters that only the list of members has.
const (
	// Unheard: the cluster is pinned, and nothing was ever heard of it.
	Unheard = "unheard"
	// NotPinned: records of the cluster arrive, and are refused.
	NotPinned = "refused"
)

// Member is a cluster, or one of its nodes, with its keys and what is trusted of it.
type Member struct {
	Cluster string `json:"cluster"`
	// Node is empty for the cluster itself.
	Node string `json:"node,omitempty"`
	// State is a cluster's ClusterState, Unheard or NotPinned; or the Contact of a Node.
	State string    `json:"state"`
	Heard time.Time `json:"heard,omitzero"`
	// Distance is a cluster's round-trip time in milliseconds, at least, as it counts for the choice of
	// endpoints; 0 if it is among the nearest, and -1 if it answers no ping.
	Distance int64 `json:"distance,omitempty"`
	// RTT is the round-trip time of another cluster's node, in milliseconds.
	RTT float64 `json:"rtt,omitempty"`
	// Link is how this daemon hears of a cluster, LinkStream or LinkReport, or whether it has a stream to a
	// node, LinkStream; empty if neither. Relay is true for a node that passes records on to others.
	Link  string `json:"link,omitempty"`
	Relay bool   `json:"relay,omitempty"`
	// Stamp is the version of its record that this daemon holds: "EPOCH/VERSION". It is empty if it holds
	// none, and in answers of earlier versions.
	Stamp string `json:"stamp,omitempty"`
	// Received is when that came in this life of the daemon, and From the node that passed it on. Both are
	// empty for what this daemon wrote itself: then Written is when it did.
	Received time.Time `json:"received,omitzero"`
	From     string    `json:"from,omitempty"`
	Written  time.Time `json:"written,omitzero"`
	// Ahead is by how many seconds the clock of another cluster's node is ahead of this machine's; missing
	// if that is not known. It can be wrong by half of RTT.
	Ahead *float64 `json:"clockAhead,omitempty"`
	// Pinned and Accepts are for clusters: whether it is trusted, and for Services of which
	// namespaces.
	Pinned  bool     `json:"pinned,omitempty"`
	Accepts []string `json:"accepts,omitempty"`
	// Keys are fingerprints: of a cluster's pinned roots, or of the key with which a node signs.
	Keys []string `json:"keys,omitempty"`
	// Signed is true if the stored record has a signature, whether or not it counts.
	Signed bool `json:"signed,omitempty"`
	// Root is the fingerprint of the root that signed the statement about a node, or the record of a
	// cluster. It is empty for the record of its own cluster on the node that leads.
	Root string `json:"root,omitempty"`
	// HasRoot is true for a node that is trusted and can lead its cluster and sign statements.
	HasRoot bool `json:"hasRoot,omitempty"`
	// Ends is when the statement about a node ends, unless it is renewed.
	Ends time.Time `json:"ends,omitzero"`
	// GossipKeys are fingerprints of the gossip keys that a node accepts. It uses the first. They are
	// empty if its build does not publish them.
	GossipKeys []string `json:"gossipKeys,omitempty"`
}

// Name is CLUSTER, or CLUSTER/NODE.
func (m Member) Name() string {
	if m.Node == "" {
		return m.Cluster
	}
	return m.Cluster + "/" + m.Node
}

// Links of members.
const (
	// LinkStream: on a stream of this daemon. LinkReport: relays of its cluster report it.
	LinkStream, LinkReport = "stream", "report"
)

// Contacts of nodes.
const (
	// Self: the node answers the question.
	Self = "self"
	// Alive: its daemon is heard. Reported: relays hear its cluster, and others hear it.
	Alive, Reported = "alive", "reported"
)

// IsHeard reports whether a node's daemon is heard: by itself, here, or by others.
func (n *Node) IsHeard() bool {
	return n.Contact == Self || n.Contact == Alive || n.Contact == Reported
}

// MemberList is the answer of GET /v1/members: each cluster before its nodes.
type MemberList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Items    []Member  `json:"items"`
}

// NewMemberList makes an answer of members, which are sorted already.
func NewMemberList(from Viewpoint, items []Member) *MemberList {
	return &MemberList{Meta{APIVersion, KindMembers}, from, orEmpty(items)}
}

// Pinned reports whether anything is pinned.
func (l *MemberList) Pinned() bool {
	for _, m := range l.Items {
		if m.Pinned {
			return true
		}
	}
	return false
}

// GossipKeys returns those of the nodes that are there, by cluster and node.
func (l *MemberList) GossipKeys() map[string][]string {
	out := map[string][]string{}
	for _, m := range l.Items {
		if m.Node != "" && (m.State == Self || m.State == Alive) {
			out[m.Cluster+"/"+m.Node] = m.GossipKeys
		}
	}
	return out
}

// Unsigned returns the nodes that are there, and the clusters, of which a record came without a signature
// or none came at all, sorted.
func (l *MemberList) Unsigned() (out []string) {
	for _, m := range l.Items {
		if !m.Signed && slices.Contains([]string{string(Here), string(Joined), Self, Alive}, m.State) {
			out = append(out, strings.TrimSuffix(m.Cluster+"/"+m.Node, "/"))
		}
	}
	slices.Sort(out)
	return out
}

// OfOtherRoot returns the nodes of a cluster that are there, and which another root states than the one
// with a fingerprint, sorted; and the cluster's own name, if its record was signed by another.
func (l *MemberList) OfOtherRoot(cluster, root string) (nodes []string) {
	for _, m := range l.Items {
		switch {
		case m.Cluster != cluster || m.Root == root:
		case m.Node == "" && m.Root != "":
			nodes = append(nodes, m.Cluster)
		case m.Node != "" && (m.State == Self || m.State == Alive):
			nodes = append(nodes, m.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// Rekeying describes the progress of a gossip key rotation; "" if all published keys are the same one.
func (l *MemberList) Rekeying() string {
	users, more, silent := map[string]int{}, false, 0
	keys := l.GossipKeys()
	for _, ks := range keys {
		if len(ks) == 0 {
			silent++
			continue
		}
		users[ks[0]]++
		more = more || len(ks) > 1
	}
	if !more && len(users) <= 1 {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(users)) {
		parts = append(parts, fmt.Sprintf("%d of %d nodes use %s", users[k], len(keys), k))
	}
	if silent > 0 {
		parts = append(parts, fmt.Sprintf("%d do not say", silent))
	}
	return "the gossip key is being replaced: " + strings.Join(parts, ", ")
}
