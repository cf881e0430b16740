package api

import (
	"strings"
	"time"
)

// States of clusters that only the list of members has.
const (
	// Unheard: the cluster is pinned, and nothing was ever heard of it.
	Unheard = "unheard"
	// NotPinned: the cluster says something, and is refused.
	NotPinned = "refused"
)

// Member is a cluster, or one of its nodes, with what it is believed for.
type Member struct {
	Cluster string `json:"cluster"`
	// Node is empty for the cluster itself.
	Node string `json:"node,omitempty"`
	// State is a cluster's ClusterState, Unheard or NotPinned; or the Contact of a Node.
	State string    `json:"state"`
	Heard time.Time `json:"heard,omitzero"`
	// Pinned and Accepts are for clusters: whether it is believed, and for Services of which
	// namespaces.
	Pinned  bool     `json:"pinned,omitempty"`
	Accepts []string `json:"accepts,omitempty"`
	// Keys are fingerprints: of a cluster's pinned roots, or of the key with which a node signs.
	Keys []string `json:"keys,omitempty"`
	// Ends is when the statement about a node ends, unless it is renewed.
	Ends time.Time `json:"ends,omitzero"`
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

// TableHeader names the columns of a member.
func (Member) TableHeader() []string {
	return []string{"MEMBER", "STATE", "HEARD", "PINNED", "KEY", "STATEMENT ENDS", "ACCEPTED NAMESPACES"}
}

// TableRow shows a cluster, or one of its nodes below it.
func (m Member) TableRow(now time.Time) []string {
	name, pinned, ends := m.Cluster, None, None
	if m.Node != "" {
		name = "  " + m.Node
	} else if m.Pinned {
		pinned = "yes"
	}
	if !m.Ends.IsZero() {
		switch left := m.Ends.Sub(now); {
		case left <= 0:
			ends = Warn + " ended " + Age(-left) + " ago"
		default:
			ends = "in " + Age(left)
		}
	}
	heard := None
	if !m.Heard.IsZero() {
		heard = since(now, m.Heard)
	}
	return []string{Short(name, nameWidth), m.state(), heard, pinned, orNone(strings.Join(m.Keys, " ")), ends, orNone(strings.Join(m.Accepts, " "))}
}

func (m Member) state() string {
	switch m.State {
	case NotPinned:
		return Bad + " " + m.State
	case string(Here), string(Joined), "self", "alive":
		return OK + " " + m.State
	}
	return Warn + " " + m.State
}
