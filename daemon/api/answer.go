package api

import (
	"cmp"
	"slices"
	"time"
)

// Kinds of answers, as in the "kind" field of the JSON.
const (
	KindStatus      = "Status"
	KindServices    = "ServiceList"
	KindExports     = "ExportList"
	KindBackends    = "BackendList"
	KindNodes       = "NodeList"
	KindTunnels     = "TunnelList"
	KindMembers     = "MemberList"
	KindPeers       = "PeerList"
	KindPolicies    = "PolicyList"
	KindExplanation = "Explanation"
	KindWhatIf      = "WhatIf"
	KindPing        = "Ping"
	KindError       = "Error"
)

// Meta begins every JSON answer and identifies the form of the rest.
type Meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Viewpoint is the node whose view an answer is, and the view's age.
type Viewpoint struct {
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	// Clusters counts the clusters of the set, this one included.
	Clusters int `json:"clusters"`
	// Time is when the answer was computed.
	Time time.Time `json:"time"`
	// Computed is true if another node computed the answer: it does not show what the kernel of
	// Node holds.
	Computed bool `json:"computed,omitempty"`
	// Past is set if the answer is of a moment of the past, as the node noted it.
	Past *Past `json:"past,omitempty"`
}

// StatusAnswer is the answer of GET /v1/status.
type StatusAnswer struct {
	Meta
	Status
}

// ServiceList is the answer of GET /v1/services, by name.
type ServiceList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Items    []Service `json:"items"`
}

// NodeList is the answer of GET /v1/nodes, by cluster and name.
type NodeList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Items    []Node    `json:"items"`
}

// TunnelList is the answer of GET /v1/tunnels, by cluster and name: of all nodes, or of one with
// ?of=CLUSTER/NODE.
type TunnelList struct {
	Meta
	SeenFrom Viewpoint     `json:"seenFrom"`
	Items    []NodeTunnels `json:"items"`
}

// Explanation is the answer of GET /v1/explain: one service with every endpoint considered.
type Explanation struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Service  Service   `json:"service"`
}

// ErrorAnswer is the body of every answer that is not 200.
type ErrorAnswer struct {
	Meta
	Message string `json:"message"`
	// Try is what to do about it.
	Try string `json:"try,omitempty"`
}

// Viewpoint returns the viewpoint of the status.
func (s Status) Viewpoint() Viewpoint {
	return Viewpoint{Cluster: s.Cluster, Node: s.Node, Clusters: len(s.Clusters), Time: s.Time}
}

// NewStatusAnswer wraps a status and adds Problems of full maps and foreign programs. Nil lists
// become empty, so that JSON readers see [] and not null.
func NewStatusAnswer(s Status) StatusAnswer {
	s = s.WithDatapath()
	s.Clusters = orEmpty(s.Clusters)
	s.Problems = orEmpty(s.Problems)
	s.Datapath.Features = orEmpty(s.Datapath.Features)
	return StatusAnswer{Meta{APIVersion, KindStatus}, s}
}

// NewServiceList makes an answer of services, which it sorts.
func NewServiceList(from Viewpoint, items []Service) *ServiceList {
	slices.SortStableFunc(items, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	return &ServiceList{Meta{APIVersion, KindServices}, from, orEmpty(items)}
}

// NewNodeList makes an answer of nodes, which it sorts.
func NewNodeList(from Viewpoint, items []Node) *NodeList {
	slices.SortStableFunc(items, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	})
	return &NodeList{Meta{APIVersion, KindNodes}, from, orEmpty(items)}
}

// NewTunnelList makes an answer of the tunnels of nodes, which are sorted already.
func NewTunnelList(from Viewpoint, items []NodeTunnels) *TunnelList {
	return &TunnelList{Meta{APIVersion, KindTunnels}, from, orEmpty(items)}
}

// NewError makes the body of an answer that is not 200.
func NewError(message, try string) ErrorAnswer {
	return ErrorAnswer{Meta{APIVersion, KindError}, message, try}
}

// NewExplanation makes an answer for the service "namespace/name". It is false if the list has no
// service of that name.
func NewExplanation(l *ServiceList, name string) (Explanation, bool) {
	i := slices.IndexFunc(l.Items, func(s Service) bool { return s.Name == name })
	if i < 0 {
		return Explanation{}, false
	}
	return Explanation{Meta{APIVersion, KindExplanation}, l.SeenFrom, l.Items[i]}, true
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
