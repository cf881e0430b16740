package api

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/internal/l4"
)

// Kinds of the answers about who calls whom.
const (
	KindFlows   = "FlowList"
	KindTraffic = "TrafficList"
)

// Flow is who calls whom: the open sockets of one client that are with one backend of a port.
type Flow struct {
	Client FlowClient `json:"client"`
	// Service is "namespace/name"; empty if no service has the frontend any more.
	Service  string  `json:"service,omitempty"`
	Frontend l4.Addr `json:"frontend"`
	// Port is the Service port's name, if it has one.
	Port    string      `json:"port,omitempty"`
	Backend FlowBackend `json:"backend"`
	FlowCounts
	// RTT is the mean round-trip time of its TCP connections in milliseconds; 0 if unknown.
	RTT float64 `json:"rtt,omitempty"`
}

// Of is the service, or the frontend that none has any more.
func (f Flow) Of() string { return cmp.Or(f.Service, f.Frontend.String()) }

// FlowClient is who has the sockets.
type FlowClient struct {
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	// Name is what Kind says; empty if it is not known.
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
	// Program is the name of the program that has the sockets, as the kernel has it: 15 bytes at most.
	// Empty if it is not known.
	Program string `json:"program,omitempty"`
}

// What the name of a client is.
const (
	// ClientPod: "namespace/name".
	ClientPod = "pod"
	// ClientCgroup: the path of a cgroup, below the one that the load balancer serves.
	ClientCgroup = "cgroup"
	// ClientAddress: the address of its sockets.
	ClientAddress = "address"
)

// FlowBackend is with whom the sockets are. Only the address is known of one that left long ago.
type FlowBackend struct {
	Addr    netip.AddrPort `json:"addr"`
	Cluster string         `json:"cluster,omitempty"`
	Node    string         `json:"node,omitempty"`
	Pod     string         `json:"pod,omitempty"`
	// Tier is as in Endpoint; empty if the service does not have the backend any more.
	Tier string `json:"tier,omitempty"`
}

// Where is the backend's place.
func (b FlowBackend) Where() string { return Endpoint{Cluster: b.Cluster, Node: b.Node}.Where() }

// FlowCounts sum up open sockets.
type FlowCounts struct {
	Open int `json:"open"`
	// Sent and Received are the bytes that the client sent and received by the TCP connections that
	// are open; missing if that is known of none. Nothing counts those of UDP.
	Sent     *uint64 `json:"sentBytes,omitempty"`
	Received *uint64 `json:"receivedBytes,omitempty"`
}

// Add adds other sockets.
func (c *FlowCounts) Add(o FlowCounts) {
	c.Open += o.Open
	c.Sent, c.Received = addKnown(c.Sent, o.Sent), addKnown(c.Received, o.Received)
}

// addKnown adds numbers of which some can be unknown: unknown is not zero.
func addKnown[N uint64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a + *b
	return &sum
}

// FlowList is the answer of GET /v1/flows, those with the most sockets first: all of the node, or those
// of one service with ?service=NAMESPACE/NAME.
type FlowList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	Items    []Flow    `json:"items"`
	// LeftOut counts the flows that are not listed because there are too many.
	LeftOut int `json:"leftOut,omitempty"`
	// Partial is why not all sockets could be looked at. Those that could not have no client and no
	// bytes.
	Partial string `json:"partial,omitempty"`
	// Nodes are the nodes that were asked, if the list is of several.
	Nodes []AskedNode `json:"nodes,omitempty"`
}

// AskedNode is a node that was asked, with why there is no answer, or what is missing in it.
type AskedNode struct {
	// Context is that of the kubeconfig, if one was used.
	Context string `json:"context,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Node    string `json:"node,omitempty"`
	LeftOut int    `json:"leftOut,omitempty"`
	Partial string `json:"partial,omitempty"`
	// Alone is why only this node of its cluster was asked; empty if all were.
	Alone string `json:"alone,omitempty"`
	Error string `json:"error,omitempty"`
	Try   string `json:"try,omitempty"`
}

// maxFlows bounds the flows of a node in an answer.
const maxFlows = 1000

// NewFlowList makes an answer of the flows of a node: of one service, or of all for "".
func NewFlowList(from Viewpoint, all []Flow, service, partial string) *FlowList {
	items := slices.DeleteFunc(slices.Clone(all), func(f Flow) bool { return service != "" && f.Service != service })
	SortFlows(items)
	l := &FlowList{Meta: Meta{APIVersion, KindFlows}, SeenFrom: from, Partial: partial}
	l.LeftOut = max(0, len(items)-maxFlows)
	l.Items = orEmpty(items[:len(items)-l.LeftOut])
	return l
}

// SortFlows sorts flows by their sockets, the most first, and then by names.
func SortFlows(items []Flow) {
	slices.SortFunc(items, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(b.Open, a.Open), strings.Compare(a.Client.Cluster, b.Client.Cluster), strings.Compare(a.Client.Node, b.Client.Node),
			strings.Compare(a.Client.Name, b.Client.Name), strings.Compare(a.Client.Program, b.Client.Program), strings.Compare(a.Of(), b.Of()), a.Frontend.Compare(b.Frontend), a.Backend.Addr.Compare(b.Backend.Addr))
	})
}

// ServiceTraffic is what a node's clients do with one service.
type ServiceTraffic struct {
	// Service is as Flow.Of.
	Service string `json:"service"`
	// Connects and Refused are as in Frontend, of all frontends of the service.
	Connects uint64 `json:"connects"`
	Refused  uint64 `json:"refused"`
	FlowCounts
	// Clusters are the clusters whose backends the connections got, by name. Connects there counts
	// those of backends that the service has now.
	Clusters []ClusterTraffic `json:"clusters,omitempty"`
}

// ClusterTraffic is the part of it that one cluster's backends have.
type ClusterTraffic struct {
	Cluster  string `json:"cluster"`
	Connects uint64 `json:"connects"`
	FlowCounts
}

// TrafficList is the answer of GET /v1/traffic: the services that have or had connections from this
// node, by name. Rates follow from two answers: see NewTop.
type TrafficList struct {
	Meta
	SeenFrom Viewpoint        `json:"seenFrom"`
	Items    []ServiceTraffic `json:"items"`
	// Partial is as in FlowList.
	Partial string `json:"partial,omitempty"`
}

// NewTrafficList makes an answer of what the kernel counted and of the flows of a node.
func NewTrafficList(from Viewpoint, counted func(each func(Traffic)), flows []Flow, partial string) *TrafficList {
	of := map[string]*ServiceTraffic{}
	service := func(name string) *ServiceTraffic {
		if of[name] == nil {
			of[name] = &ServiceTraffic{Service: name}
		}
		return of[name]
	}
	counted(func(t Traffic) {
		if t.Connects == 0 && t.Refused == 0 {
			return
		}
		s := service(t.Service)
		s.Connects, s.Refused = s.Connects+t.Connects, s.Refused+t.Refused
		for _, b := range t.Backends {
			if b.Connects > 0 {
				s.cluster(b.Cluster).Connects += b.Connects
			}
		}
	})
	for _, f := range flows {
		s := service(f.Of())
		s.Add(f.FlowCounts)
		s.cluster(f.Backend.Cluster).Add(f.FlowCounts)
	}
	l := &TrafficList{Meta: Meta{APIVersion, KindTraffic}, SeenFrom: from, Items: []ServiceTraffic{}, Partial: partial}
	for _, s := range of {
		slices.SortFunc(s.Clusters, func(a, b ClusterTraffic) int { return strings.Compare(a.Cluster, b.Cluster) })
		l.Items = append(l.Items, *s)
	}
	slices.SortFunc(l.Items, func(a, b ServiceTraffic) int { return strings.Compare(a.Service, b.Service) })
	return l
}

// cluster returns the part of a cluster, which it adds if there is none. It is valid until the next call.
func (s *ServiceTraffic) cluster(name string) *ClusterTraffic {
	i := slices.IndexFunc(s.Clusters, func(c ClusterTraffic) bool { return c.Cluster == name })
	if i < 0 {
		i, s.Clusters = len(s.Clusters), append(s.Clusters, ClusterTraffic{Cluster: name})
	}
	return &s.Clusters[i]
}
