// Package fake answers like a daemon, for tests of what asks one: the server, the metrics, the CLI.
//
// Input is a View that the test may change; outputs are the answers of package api. It must not know
// who asks.
package fake

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// View is all that a daemon could say at one moment.
type View struct {
	Status   api.Status
	Services []api.Service
	Nodes    []api.Node
	Tunnels  []api.NodeTunnels
	Flows    []api.Flow
	History  []api.HistoryItem
	Logs     []api.LogLine
	// Members are one pinned cluster if it is nil.
	Members []api.Member
}

// Source is a View that tests may change while a server answers from it.
type Source struct{ view atomic.Pointer[View] }

// NewSource makes a source of a view, or of a daemon without a plan for nil.
func NewSource(v *View) *Source {
	s := &Source{}
	s.view.Store(v)
	return s
}

// Store replaces the view.
func (s *Source) Store(v *View) { s.view.Store(v) }

// Ready is that of the view.
func (s *Source) Ready() api.Readiness {
	v := s.view.Load()
	if v == nil {
		return api.Readiness{}
	}
	return api.Readiness{Planned: true, Ready: v.Status.Ready, Waiting: v.Status.Waiting}
}

// Status is that of the view; nil without a view.
func (s *Source) Status() *api.Status {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	status := v.Status
	return &status
}

// Services are those of the view; nil without a view.
func (s *Source) Services() *api.ServiceList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return api.NewServiceList(v.Status.Viewpoint(), slices.Clone(v.Services))
}

// Nodes are those of the view; nil without a view.
func (s *Source) Nodes() *api.NodeList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return api.NewNodeList(v.Status.Viewpoint(), slices.Clone(v.Nodes))
}

// Tunnels are those of the view; nil without a view.
func (s *Source) Tunnels(of string) (*api.TunnelList, error) {
	v := s.view.Load()
	if v == nil {
		return nil, nil
	}
	return api.NewTunnelList(v.Status.Viewpoint(), slices.DeleteFunc(slices.Clone(v.Tunnels), func(t api.NodeTunnels) bool {
		return of != "" && of != t.Node
	})), nil
}

// Flows are those of the view; nil without a view.
func (s *Source) Flows(_ context.Context, service string) (*api.FlowList, error) {
	v := s.view.Load()
	if v == nil {
		return nil, nil
	}
	return api.NewFlowList(v.Status.Viewpoint(), v.Flows, service, ""), nil
}

// TrafficList is that of the view; nil without a view.
func (s *Source) TrafficList(context.Context) (*api.TrafficList, error) {
	v := s.view.Load()
	if v == nil {
		return nil, nil
	}
	return api.NewTrafficList(v.Status.Viewpoint(), v.Traffic, v.Flows, ""), nil
}

// PolicyList is nil, as while a daemon starts.
func (s *Source) PolicyList() *api.PolicyList { return nil }

// MirrorOf knows one mirror, shop/far.
func (s *Source) MirrorOf(service string) (string, []string) {
	if service == "shop/far" {
		return "stars", []string{"us-west/shop/cart", "us-east/shop/cart"}
	}
	return "", nil
}

// Peers is one laptop; nil without a view.
func (s *Source) Peers() *api.PeerList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return api.NewPeerList(v.Status.Viewpoint(), []api.Guest{{Name: "laptop", Range: []netip.Prefix{netip.MustParsePrefix("10.99.0.2/32")}}})
}

// MemberList is that of the view; nil without a view.
func (s *Source) MemberList() *api.MemberList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	if v.Members != nil {
		return api.NewMemberList(v.Status.Viewpoint(), v.Members)
	}
	return api.NewMemberList(v.Status.Viewpoint(), []api.Member{{Cluster: "a", State: "here", Pinned: true, Keys: []string{"SHA256:a"}}})
}

// Writes are two kinds of write, of which one failed.
func (s *Source) Writes() []api.Written {
	return []api.Written{{Verb: "apply", Kind: "ServiceImport", Count: 3}, {Verb: "create", Kind: "Service", Failed: true, Count: 1}}
}

// Gossiped are some datagrams.
func (s *Source) Gossiped() []api.Gossiped {
	return []api.Gossiped{{Transport: "udp", Direction: "sent", Bytes: 300}, {Transport: "udp", Direction: "received", Bytes: 200}}
}

// Members counts the nodes of the view.
func (s *Source) Members() map[string]int {
	count := map[string]int{}
	for _, n := range s.view.Load().Nodes {
		switch {
		case n.Dead:
			count["dead"]++
		case n.Contact == "self":
			count["alive"]++
		default:
			count[n.Contact]++
		}
	}
	return count
}

// Traffic is what the endpoints of the view counted.
func (s *Source) Traffic(each func(api.Traffic)) { s.view.Load().Traffic(each) }

// Traffic is what the endpoints of the view counted.
func (v *View) Traffic(each func(api.Traffic)) {
	for _, s := range v.Services {
		for _, f := range s.Frontends {
			t := api.Traffic{Service: s.Name, Frontend: f.Addr, Connects: f.Connects, Refused: f.Refused}
			for _, e := range f.Endpoints {
				t.Backends = append(t.Backends, api.BackendTraffic{Addr: e.Addr, Cluster: e.Cluster, Connects: e.Connects})
			}
			each(t)
		}
	}
}

// Sample is a small view of two clusters.
func Sample() *View {
	at := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	addr := l4.New(netip.MustParseAddr("241.0.0.1"), 80, l4.TCP)
	return &View{
		Status: api.Status{Cluster: "a", Node: "n1", Version: "0.1.0", Time: at, Applied: at, Ready: true, Origins: 5, StatementEnds: at.Add(24 * time.Hour), Refused: map[string]uint64{"datagram": 7},
			Clusters: []api.Cluster{{Name: "a", State: "here", Nodes: 1, Alive: 1},
				{Name: "b", State: "joined", Nodes: 2, Alive: 1, Config: 2, Heard: at, RTT: 90,
					Tunnels: &api.Tunnels{States: map[string]int{"carrying": 1, "one-way": 1}, RTT: 92.5, Loss: 0.25}}, {Name: "c", State: "held", Nodes: 1, ConfigLeftOut: 3}},
			Datapath: api.Datapath{Attached: true, Cgroup: "/sys/fs/cgroup", Frontends: 2, Backends: 3, Mesh: "kernel",
				Maps: []datapath.MapUsage{{Map: "services", Used: 2, Limit: 64}}, Destroyed: api.Destroyed{UDP: 3}},
			Problems: []problem.Problem{{Code: problem.MapFull, Object: "x", Message: "bad"}, {Code: problem.MapNearlyFull, Object: "y", Message: "meh", Warning: true}}},
		Services: []api.Service{{Name: "default/serve", Type: "ClusterSetIP", Exporters: []string{"a"},
			Frontends: []api.Frontend{{Addr: addr, Port: "http", Tier: "node", InKernel: true, Connects: 9, Refused: 2, Endpoints: []api.Endpoint{
				{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Cluster: "a", Node: "n1", Tier: "node", Ready: true, Weight: 1,
					Share: 1, Reason: "nearest", Connects: 5},
				{Addr: netip.MustParseAddrPort("10.0.1.1:80"), Cluster: "b", Tier: "clusterset", Ready: true, Reason: "standby",
					Connects: 4},
			}}}}, {Name: "default/cart", Type: "ClusterSetIP"}},
		Nodes: []api.Node{{Cluster: "b", Name: "n2", Contact: "held", Dead: true}, {Cluster: "a", Name: "n1", Contact: "self"},
			{Cluster: "b", Name: "n1", Contact: "alive"}, {Cluster: "c", Name: "n1", Contact: "held"}},
		Tunnels: []api.NodeTunnels{{Node: "a/n1", Tunnels: []api.TunnelTo{{Node: "b/n1", Reached: []string{"b/n1", "b/n2"}}, {Node: "c/n1"}}},
			{Node: "b/n1", Tunnels: []api.TunnelTo{{Node: "a/n1"}, {Node: "b/n2"}}}},
	}
}

// ServicesFrom gives any node the same services, except nobody.
func (s *Source) ServicesFrom(node string) (*api.ServiceList, error) {
	l := s.Services()
	if node == "nobody" {
		return nil, problem.Refuse("strait nodes lists them", "no node is called nobody")
	}
	if l != nil {
		l.SeenFrom.Node, l.SeenFrom.Computed = node, true
	}
	return l, nil
}

// Ping is answered by a node, and by nothing else.
func (s *Source) Ping(_ context.Context, to string) (*api.Ping, error) {
	v := s.view.Load()
	if v == nil || strings.Contains(to, "nobody") {
		return nil, problem.Refuse("strait nodes lists them", "there is no node, service or pod %s", to)
	}
	ways := []api.Way{{Way: api.WayGossip, To: "192.0.2.3:7946", Sent: 3, Answered: 3, RTT: 12}}
	return api.NewPing(v.Status.Viewpoint(), "node", to, to, ways, 51820, 7946), nil
}

// WhatIf takes every frontend away, unless the change is nonsense.
func (s *Source) WhatIf(change, service, from string) (*api.WhatIf, error) {
	l := s.Services()
	if change == "nonsense" || l == nil {
		return nil, problem.Refuse("write another", "that is no change")
	}
	after := slices.Clone(l.Items)
	for i := range after {
		after[i].Frontends = nil
	}
	return api.NewWhatIf(l.SeenFrom, change, l.Items, after, 1.4), nil
}
