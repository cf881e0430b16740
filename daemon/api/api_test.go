package api

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// View is all that a daemon could say at one moment.
type View struct {
	Status   Status
	Services []Service
	Nodes    []Node
}

// source is a View that tests may change while a server answers from it.
type source struct{ view atomic.Pointer[View] }

func newSource(v *View) *source {
	s := &source{}
	s.view.Store(v)
	return s
}

func (s *source) Ready() Readiness {
	v := s.view.Load()
	if v == nil {
		return Readiness{}
	}
	return Readiness{Planned: true, Ready: v.Status.Ready, Waiting: v.Status.Waiting}
}

func (s *source) Status() *Status {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	status := v.Status
	return &status
}

func (s *source) Services() *ServiceList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return NewServiceList(v.Status.Viewpoint(), slices.Clone(v.Services))
}

func (s *source) Nodes() *NodeList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return NewNodeList(v.Status.Viewpoint(), slices.Clone(v.Nodes))
}

func (s *source) PolicyList() *PolicyList { return nil }

func (s *source) MirrorOf(service string) (string, []string) {
	if service == "shop/far" {
		return "stars", []string{"us-west/shop/cart", "us-east/shop/cart"}
	}
	return "", nil
}

func (s *source) Peers() *PeerList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return NewPeerList(v.Status.Viewpoint(), []Guest{{Name: "laptop", Range: []netip.Prefix{netip.MustParsePrefix("10.99.0.2/32")}}})
}

func (s *source) MemberList() *MemberList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return NewMemberList(v.Status.Viewpoint(), []Member{{Cluster: "a", State: "here", Pinned: true, Keys: []string{"SHA256:a"}}})
}

func (s *source) Writes() []Written {
	return []Written{{"apply", "ServiceImport", false, 3}, {"create", "Service", true, 1}}
}

func (s *source) Members() map[string]int {
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

func (s *source) Traffic(each func(Traffic)) { s.view.Load().traffic(each) }

func (v *View) traffic(each func(Traffic)) {
	for _, s := range v.Services {
		for _, f := range s.Frontends {
			t := Traffic{Service: s.Name, Frontend: f.Addr, Connects: f.Connects, Refused: f.Refused}
			for _, e := range f.Endpoints {
				t.Backends = append(t.Backends, BackendTraffic{e.Addr, e.Cluster, e.Connects})
			}
			each(t)
		}
	}
}

// sample is a small view of two clusters.
func sample() *View {
	at := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	addr := l4.New(netip.MustParseAddr("241.0.0.1"), 80, l4.TCP)
	return &View{
		Status: Status{Cluster: "a", Node: "n1", Version: "0.1.0", Time: at, Applied: at, Ready: true, Origins: 5, Refused: map[string]uint64{"datagram": 7},
			Clusters: []Cluster{{Name: "a", State: "here", Nodes: 1, Alive: 1},
				{Name: "b", State: "joined", Nodes: 2, Alive: 1, Config: 2, Heard: at,
					Tunnels: &Tunnels{States: map[string]int{"carrying": 1, "one-way": 1}, RTT: 92.5, Loss: 0.25}}, {Name: "c", State: "held", Nodes: 1, ConfigLeftOut: 3}},
			Datapath: Datapath{Attached: true, Cgroup: "/sys/fs/cgroup", Frontends: 2, Backends: 3, Mesh: "kernel",
				Maps: []datapath.MapUsage{{Map: "services", Used: 2, Limit: 64}}, Destroyed: Destroyed{UDP: 3}},
			Problems: []problem.Problem{{Object: "x", Message: "bad"}, {Object: "y", Message: "meh", Warning: true}}},
		Services: []Service{{Name: "default/serve", Type: "ClusterSetIP", Exporters: []string{"a"},
			Frontends: []Frontend{{Addr: addr, Port: "http", Tier: "node", InKernel: true, Connects: 9, Refused: 2, Endpoints: []Endpoint{
				{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Cluster: "a", Node: "n1", Tier: "node", Ready: true, Weight: 1,
					Share: 1, Reason: "nearest", Connects: 5},
				{Addr: netip.MustParseAddrPort("10.0.1.1:80"), Cluster: "b", Tier: "clusterset", Ready: true, Reason: "standby",
					Connects: 4},
			}}}}, {Name: "default/cart", Type: "ClusterSetIP"}},
		Nodes: []Node{{Cluster: "b", Name: "n2", Contact: "held", Dead: true}, {Cluster: "a", Name: "n1", Contact: "self"},
			{Cluster: "b", Name: "n1", Contact: "alive"}, {Cluster: "c", Name: "n1", Contact: "held"}},
	}
}

// shortDir is a new directory whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "strait-t-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start runs the server until stop is called, at the latest when the test ends, and waits for its socket.
func start(t *testing.T, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(stop)
	waitFor(t, "the socket", func() bool {
		var f *Failure
		_, err := NewClient(s.cfg.Socket).Status(ctx)
		return !errors.As(err, &f) || f.Reason == Starting
	})
	return stop
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

func socketIn(dir string) string { return filepath.Join(dir, "run", "strait.sock") }

func (s *source) ServicesFrom(node string) (*ServiceList, error) {
	l := s.Services()
	if node == "nobody" {
		return nil, problem.Refuse("strait nodes lists them", "no node is called nobody")
	}
	if l != nil {
		l.SeenFrom.Node, l.SeenFrom.Computed = node, true
	}
	return l, nil
}

func (s *source) WhatIf(change, service, from string) (*WhatIf, error) {
	l := s.Services()
	if change == "nonsense" || l == nil {
		return nil, problem.Refuse("write another", "that is no change")
	}
	after := slices.Clone(l.Items)
	for i := range after {
		after[i].Frontends = nil
	}
	return NewWhatIf(l.SeenFrom, change, l.Items, after, 1.4), nil
}
