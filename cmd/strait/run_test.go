package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/fake"
	"strait.io/strait/daemon/api/server"
	"strait.io/strait/internal/problem"
)

// view is all that a daemon could say at one moment.
type view struct {
	Status   api.Status
	Services []api.Service
	Nodes    []api.Node
	Tunnels  []api.NodeTunnels
	Members  []api.Member
	Policies []api.Policy
	Peers    []api.Guest
	Flows    []api.Flow
}

func (v *view) services() *api.ServiceList {
	return api.NewServiceList(v.Status.Viewpoint(), slices.Clone(v.Services))
}

func (v *view) nodes() *api.NodeList {
	return api.NewNodeList(v.Status.Viewpoint(), slices.Clone(v.Nodes))
}

// source is a view that tests may change while a server answers from it.
type source struct {
	view  atomic.Pointer[view]
	alone atomic.Bool // a drain would leave default/serve without other endpoints
}

func (s *source) Ready() api.Readiness { return api.Readiness{} }

func (s *source) Status() *api.Status {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	status := v.Status
	return &status
}

func (s *source) Services() *api.ServiceList {
	if v := s.view.Load(); v != nil {
		return v.services()
	}
	return nil
}

func (s *source) MemberList() *api.MemberList {
	if v := s.view.Load(); v != nil {
		return api.NewMemberList(v.Status.Viewpoint(), v.Members)
	}
	return nil
}

func (s *source) MirrorOf(string) (string, []string) { return "", nil }

func (s *source) PolicyList() *api.PolicyList {
	if v := s.view.Load(); v != nil {
		return api.NewPolicyList(v.Status.Viewpoint(), v.Policies)
	}
	return nil
}

func (s *source) Flows(_ context.Context, service string) (*api.FlowList, error) {
	if v := s.view.Load(); v != nil {
		return api.NewFlowList(v.Status.Viewpoint(), v.Flows, service, ""), nil
	}
	return nil, nil
}

func (s *source) TrafficList(context.Context) (*api.TrafficList, error) {
	if v := s.view.Load(); v != nil {
		return api.NewTrafficList(v.Status.Viewpoint(), (&fake.View{Services: v.Services}).Traffic, v.Flows, ""), nil
	}
	return nil, nil
}

func (s *source) Peers() *api.PeerList {
	if v := s.view.Load(); v != nil {
		return api.NewPeerList(v.Status.Viewpoint(), v.Peers)
	}
	return nil
}

func (s *source) Nodes() *api.NodeList {
	if v := s.view.Load(); v != nil {
		return v.nodes()
	}
	return nil
}

func (s *source) Tunnels(of string) (*api.TunnelList, error) {
	v := s.view.Load()
	if v == nil {
		return nil, nil
	}
	return api.NewTunnelList(v.Status.Viewpoint(), slices.DeleteFunc(slices.Clone(v.Tunnels), func(t api.NodeTunnels) bool {
		return of != "" && of != t.Node
	})), nil
}

// startServer runs a real server.Server on a new socket until the test ends.
func startServer(t *testing.T, view *view) (socket string, src *source) {
	t.Helper()
	dir, err := os.MkdirTemp("", "strait-t-") // t.TempDir can be longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	src = &source{}
	src.view.Store(view)
	socket = filepath.Join(dir, "strait.sock")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.New(server.Config{Socket: socket}, src).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := client.OnSocket(socket)
	for range 500 {
		var failure *api.Failure
		if _, err := c.Status(t.Context()); !errors.As(err, &failure) || failure.Reason == api.Starting {
			return socket, src
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the server did not come up")
	return "", nil
}

// result is what a run left.
type result struct {
	code           int
	stdout, stderr string
}

// world is an env for tests: no environment, no terminal, a clock that stands still, pins that are a fake's.
func world(args ...string) env {
	return env{cli.App{Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" },
		Now: func() time.Time { return now }}, wellPins().kernel(), func() bool { return false }}
}

func (e env) with(key, value string) env {
	before := e.Getenv
	e.Getenv = func(k string) string {
		if k == key {
			return value
		}
		return before(k)
	}
	return e
}

func (e env) on(socket string) env { return e.with("STRAIT_SOCKET", socket) }

func (e env) run(t *testing.T) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	e.Stdout, e.Stderr = &stdout, &stderr
	code := run(t.Context(), e)
	return result{code, stdout.String(), stderr.String()}
}

func (s *source) ServicesFrom(node string) (*api.ServiceList, error) {
	l := s.Services()
	if node == "nobody" {
		return nil, errors.New("no node is called nobody; strait nodes lists them")
	}
	if l != nil {
		l.SeenFrom.Node, l.SeenFrom.Computed = node, true
	}
	return l, nil
}

// Ping is answered by each way to a node that is called well, and not by the tunnel to others.
func (s *source) Ping(_ context.Context, to string) (*api.Ping, error) {
	l := s.Services()
	if to == "nobody" || l == nil {
		return nil, problem.Refuse("strait nodes lists them", "there is no node, service or pod %s", to)
	}
	ways := []api.Way{
		{Way: api.WayGossip, To: "192.0.2.3:7946", Sent: 3, Answered: 3, RTT: 12, Known: 11.5},
		{Way: api.WayTunnel, To: "10.2.0.1", Sent: 3, State: "silent"},
		{Way: api.WayLarge, To: "10.2.0.1", Sent: 3},
	}
	if to == "west/well" {
		for i := range ways[1:] {
			ways[i+1].Answered, ways[i+1].RTT = 3, 12.4
		}
		ways[1].State = "carrying"
	}
	return api.NewPing(l.SeenFrom, "node", to, to, ways, 51820, 7946), nil
}

func (s *source) WhatIf(change, service, from string) (*api.WhatIf, error) {
	l := s.Services()
	if change == "nonsense" || l == nil {
		return nil, errors.New("that is no change; write another")
	}
	after := slices.Clone(l.Items)
	for i := range after {
		after[i].Frontends = nil
	}
	w := api.NewWhatIf(l.SeenFrom, change, l.Items, after, 1.4)
	if s.alone.Load() {
		w.Alone = append(w.Alone, "default/serve")
	}
	return w, nil
}
