package main

import (
	"net/netip"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// now is the moment of all tests; the sample's times are relative to it.
var now = time.Date(2026, 11, 20, 14, 2, 11, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func frontend(s string) l4.Addr {
	a, err := l4.Parse(s)
	if err != nil {
		panic(err)
	}
	return a
}

// wellView is a clusterset in which all is well.
func wellView() *view {
	return &view{
		Status: api.Status{
			Cluster: "us-east", Node: "us-east-n1", Version: "0.1.0", Leader: true, Ready: true, Origins: 9,
			Time: ago(400 * time.Millisecond), Applied: ago(95 * time.Second),
			Clusters: []api.Cluster{
				{Name: "eu-central", State: "joined", Nodes: 2, Alive: 2, Exports: 2, Endpoints: 4, Heard: ago(300 * time.Millisecond)},
				{Name: "us-east", State: "here", Nodes: 2, Alive: 2, Exports: 2, Endpoints: 3, Heard: now},
			},
			Datapath: api.Datapath{Attached: true, Cgroup: "/sys/fs/cgroup", Pins: "/sys/fs/bpf/strait", Frontends: 3,
				Backends: 4, Mesh: "kernel", Features: []datapath.Feature{{Name: "bpf_set_retval", OK: true, Since: "5.18"}},
				Maps: []datapath.MapUsage{{Map: "services", Used: 3, Limit: 65536, Setting: "bpf.maxFrontends"},
					{Map: "backends", Used: 104857, Limit: 262144}, {Map: "sockets", Limit: 131072}}},
		},
		Services: []api.Service{serve(), far(), headless()},
		Nodes:    nodes(),
		Members: []api.Member{
			{Cluster: "eu-central", State: "joined", Heard: ago(300 * time.Millisecond), Pinned: true, Accepts: []string{"shop", "team-*"}, Keys: []string{"SHA256:6NmTNvmzTk8ZJj0vHBH4HmGqI8nQEZtQbM2XKzqXk3A"}},
			{Cluster: "eu-central", Node: "eu-central-n1", State: "alive", Heard: ago(300 * time.Millisecond), Keys: []string{"SHA256:vPpxLl1RTyoUb9fHkNYnK1bI2X9i4w8Y1m0Z5u6c7dE"}, Ends: now.Add(23*time.Hour + 20*time.Minute)},
			{Cluster: "eu-central", Node: "eu-central-n2", State: "held", Keys: []string{"SHA256:k3A6NmTNvmzTk8ZJj0vHBH4HmGqI8nQEZtQbM2XKzqX"}, Ends: ago(90 * time.Minute)},
			{Cluster: "us-east", State: "here", Heard: now, Pinned: true, Keys: []string{"SHA256:Y1m0Z5u6c7dEvPpxLl1RTyoUb9fHkNYnK1bI2X9i4w8"}},
			{Cluster: "us-east", Node: "us-east-n1", State: "self", Heard: now, Keys: []string{"SHA256:n1n1LlRTyoUb9fHkNYnK1bI2X9i4w8Y1m0Z5u6c7dEv"}, Ends: now.Add(24 * time.Hour), HasRoot: true},
			{Cluster: "later", State: api.Unheard, Pinned: true, Accepts: []string{"*"}, Keys: []string{"SHA256:later1LlRTyoUb9fHkNYnK1bI2X9i4w8Y1m0Z5u6c7d"}},
			{Cluster: "mallory", State: api.NotPinned},
		},
		Flows: flows(),
		Policies: []api.Policy{
			{Name: "shop/cart", As: "join", From: []string{"eu-central"}, To: []string{"us-east"}, Selected: 1, Joined: 1,
				Others: []string{"shop/cart of eu-central"}},
			{Name: "shop", As: "mirror", Selected: 3, Shared: 1, SkippedMore: 1, Mirrored: 2,
				Others: []string{"shop/pay of us-west", "shop/taken of us-west", "shop/till of us-west"},
				Skipped: []api.SkippedService{
					{Service: "shop/old", Reason: "ExternalName", Message: "its type is ExternalName, so it has no endpoints"},
					{Service: "us-west/shop/taken", Reason: "TargetExists", Message: "Service shop/taken of cluster us-east is not a mirror, and stays as it is"},
				},
				Elsewhere: []api.PolicyElsewhere{{Cluster: "eu-central", SkippedMore: 2}, {Cluster: "us-west", Mirrored: 1, Skipped: []api.SkippedService{
					{Service: "us-east/shop/cart", Reason: "NamespaceMissing", Message: "cluster us-west has no namespace shop; create it, or write createNamespace: true"},
				}}}},
		},
	}
}

func serve() api.Service {
	endpoints := []api.Endpoint{
		{Addr: addrPort("10.1.0.11:8080"), Cluster: "us-east", Node: "us-east-n1", Pod: "serve-a", Zone: "us-east-1a",
			Region: "us-east", Tier: "node", Ready: false, Reason: "pod is not ready"},
		{Addr: addrPort("10.1.1.12:8080"), Cluster: "us-east", Node: "us-east-n2", Pod: "serve-b", Zone: "us-east-1a",
			Region: "us-east", Tier: "zone", Ready: true, Weight: 65536, Share: 0.5, Reason: "nearest tier with a ready endpoint"},
		{Addr: addrPort("10.1.1.13:8080"), Cluster: "us-east", Node: "us-east-n2", Pod: "serve-c", Zone: "us-east-1a",
			Region: "us-east", Tier: "zone", Ready: true, Weight: 65536, Share: 0.5, Reason: "nearest tier with a ready endpoint"},
		{Addr: addrPort("10.3.0.11:8080"), Cluster: "eu-central", Node: "eu-central-n1", Pod: "serve-x",
			Region: "eu-central", Tier: "clusterset", Ready: true, RTT: 82.1, Reason: "standby: tier zone has ready endpoints"},
	}
	return api.Service{Name: "default/serve", Type: "ClusterSetIP", IPs: []netip.Addr{netip.MustParseAddr("241.7.3.9")},
		Exporters: []string{"us-east", "eu-central"}, Frontends: []api.Frontend{
			{Addr: frontend("241.7.3.9:80/TCP"), Port: "http", Tier: "zone", InKernel: true, Endpoints: endpoints},
			{Addr: frontend("241.7.3.9:53/UDP"), Port: "dns", Tier: "zone", InKernel: true, Endpoints: endpoints},
		}}
}

func far() api.Service {
	return api.Service{Name: "default/far", Type: "ClusterSetIP", IPs: []netip.Addr{netip.MustParseAddr("241.200.1.1")},
		Exporters: []string{"eu-central"}, Frontends: []api.Frontend{{
			Addr: frontend("241.200.1.1:80/TCP"), Tier: "clusterset", InKernel: true, Endpoints: []api.Endpoint{
				{Addr: addrPort("10.3.0.21:8080"), Cluster: "eu-central", Node: "eu-central-n1", Pod: "far-x", Tier: "clusterset",
					Ready: true, Weight: 65536, Share: 2.0 / 3, Reason: "nearest tier with a ready endpoint"},
				{Addr: addrPort("10.3.0.22:8080"), Cluster: "eu-central", Tier: "clusterset",
					Ready: true, Weight: 32768, Share: 1.0 / 3, Reason: "nearest tier with a ready endpoint"},
			}}}}
}

func headless() api.Service {
	return api.Service{Name: "default/peers", Type: "Headless", Exporters: []string{"us-east"}}
}

func nodes() []api.Node {
	node := func(cluster, name, contact, ip, pods string, heard time.Time) api.Node {
		return api.Node{Cluster: cluster, Name: name, Contact: contact, Zone: cluster + "-1a", Region: cluster,
			Addresses: []netip.Addr{netip.MustParseAddr(ip)}, Prefixes: []netip.Prefix{netip.MustParsePrefix(pods)},
			Endpoints: 2, Stamp: "1763647000/12", Heard: heard}
	}
	remote := node("eu-central", "eu-central-n1", "alive", "203.0.113.1", "10.3.0.0/24", ago(300*time.Millisecond))
	remote.Tunnel = &api.Tunnel{Underlay: addrPort("203.0.113.1:51820"), Handshake: ago(41 * time.Second),
		Sent: 1288490189, Received: 980, State: "one-way", Since: ago(30 * time.Second), RTT: 92.4}
	quiet := node("eu-central", "eu-central-n2", "quiet", "203.0.113.2", "10.3.1.0/24", ago(6*time.Minute+12*time.Second))
	quiet.Tunnel = &api.Tunnel{Underlay: addrPort("203.0.113.2:51820"), State: "never"}
	return []api.Node{node("us-east", "us-east-n1", "self", "198.51.100.1", "10.1.0.0/24", now),
		node("us-east", "us-east-n2", "alive", "198.51.100.2", "10.1.1.0/24", ago(200*time.Millisecond)), remote, quiet}
}

// illView has one of everything that can be wrong, and a name that tries to drive the terminal.
func illView() *view {
	v := wellView()
	v.Flows = nil
	v.Members = []api.Member{{Cluster: "eu-central", State: "joined", Heard: ago(time.Second)}, {Cluster: "eu-central", Node: "x\x1b", State: "alive"}}
	v.Status.Clusters = append(v.Status.Clusters,
		api.Cluster{Name: "us-west", State: api.Held, Nodes: 2, Dead: 1, Exports: 1, Endpoints: 6, Heard: ago(372 * time.Second)},
		api.Cluster{Name: "ap-south", State: api.Quiet, Nodes: 2, Exports: 1, Endpoints: 2})
	v.Status.Waiting = []string{"records of cluster us-west"}
	v.Status.Writing = &api.Writing{Done: 3214, Total: 10_000, Began: ago(100 * time.Second)}
	v.Status.Datapath.Features = append(v.Status.Datapath.Features,
		datapath.Feature{Name: "socket iterator destroy", Since: "6.5", Without: "stale UDP sockets are closed by netlink"},
		datapath.Feature{Name: "CO-RE", Since: "5.10"})
	v.Status.Datapath.Maps = []datapath.MapUsage{{Map: "services", Used: 52429, Limit: 65536, Setting: "bpf.maxFrontends"},
		{Map: "backends", Used: 262144, Limit: 262144, Setting: "bpf.maxBackends"}, {Map: "optouts", Used: 8, Limit: 8},
		{Map: "affinities", Used: 64, Limit: 64, Soft: true}}
	v.Status.Datapath.Foreign = []datapath.ForeignProgram{{Hook: "connect4", ID: 42, Name: "cil_sock4_connect", Path: "/sys/fs/cgroup",
		Order: "before"}, {Hook: "recvmsg6", ID: 43, Path: "/sys/fs/cgroup/x\x1b", Order: "below"}, {Hook: "connect6", ID: 44, Name: "f"}}
	v.Status.Problems = []problem.Problem{
		problem.Named("map", "optouts").Problem(problem.Problem{Code: problem.MapFull, Message: "is full (8 of 8 entries): existing entries stay in force, new ones do not fit"}),
		problem.Object("ServiceExport", "default", "serve").Problem(problem.Problem{Code: problem.ExportConflict, Field: "ports[http]", Message: "1/2 clusters disagree (eu-central); the oldest " +
			"export, from us-east, is in force", Try: "make the Services agree in every exporting cluster", Warning: true}),
		problem.Object("Service", "default", "broken").Problem(problem.Problem{Code: problem.ExportImpossible, Field: "spec.ports", File: "/etc/strait/objects/broken.yaml",
			Message: "has no ports\x1b[31m", Try: "add a port"}),
	}
	overruled := far()
	overruled.Name = "shop/overruled"
	overruled.Frontends[0].Ahead = []string{"cil_sock4_connect", "f"}
	refused := far()
	refused.Name = "shop/refused"
	refused.Frontends[0] = api.Frontend{Addr: frontend("[fd00::9]:80/TCP"), InKernel: false}
	mixed := serve()
	mixed.Name = "shop/mixed"
	mixed.Frontends[0].InKernel = false
	mixed.Frontends[1].Tier = ""
	mixed.Frontends[1].Endpoints = mixed.Frontends[1].Endpoints[:1]
	v.Services = append(v.Services, overruled, refused, mixed)
	dead := v.Nodes[3]
	dead.Cluster, dead.Name, dead.Contact, dead.Dead, dead.Tunnel = "us-west", "us-west-n1", "silent", true, nil
	dead.Witnesses, dead.Heard = []string{"us-west/us-west-n2", "us-east/us-east-n2"}, time.Time{}
	v.Nodes = append(v.Nodes, dead)
	return v
}

// meshlessView has nodes without tunnels, and all that can make their table wide.
func meshlessView() *view {
	v := wellView()
	for i := range v.Nodes {
		v.Nodes[i].Tunnel, v.Nodes[i].Zone = nil, ""
	}
	n := &v.Nodes[1]
	n.Name = "ip-10-1-2-3.us-east-1.compute.internal"
	n.Addresses = []netip.Addr{netip.MustParseAddr("2001:db8:1234:5678:9abc:def0:1234:5678"), n.Addresses[0]}
	n.Prefixes = append(n.Prefixes, netip.MustParsePrefix("10.1.9.0/24"), netip.MustParsePrefix("fd00:1::/64"))
	return v
}

// dualView has services of both IP families: default/both works at both addresses, default/half
// lacks pods of one.
func dualView() *view {
	v := wellView()
	v.Status.Clusters[0].EndpointsIPv6 = 2
	four := api.Endpoint{Addr: addrPort("10.3.0.11:8080"), Cluster: "eu-central", Node: "eu-central-n1", Pod: "both-x", Tier: "clusterset"}
	six := four
	six.Addr = addrPort("[fd00:3::11]:8080")
	at := func(vip string, used, other api.Endpoint) api.Frontend {
		f := api.Frontend{Addr: frontend(vip), Tier: "clusterset", InKernel: true}
		if used.Addr.IsValid() {
			used.Ready, used.Weight, used.Share, used.Reason = true, 65536, 1, "nearest tier with a ready endpoint"
			f.Endpoints = append(f.Endpoints, used)
		} else {
			f.Tier = ""
		}
		if other.Addr.IsValid() {
			other.Reason = "is IPv4, the frontend is IPv6"
			if f.Addr.IP.Is4() {
				other.Reason = "is IPv6, the frontend is IPv4"
			}
			f.Endpoints = append(f.Endpoints, other)
		}
		return f
	}
	service := func(name, vip4, vip6 string, fs ...api.Frontend) api.Service {
		return api.Service{Name: name, Type: "ClusterSetIP", Exporters: []string{"eu-central"}, Frontends: fs,
			IPs: []netip.Addr{netip.MustParseAddr(vip4), netip.MustParseAddr(vip6)}}
	}
	v.Services = []api.Service{
		service("default/both", "241.7.3.9", "fd00::9", at("241.7.3.9:80/TCP", four, six), at("[fd00::9]:80/TCP", six, four)),
		service("default/half", "241.7.3.8", "fd00::8", at("241.7.3.8:80/TCP", four, api.Endpoint{}), at("[fd00::8]:80/TCP", api.Endpoint{}, four)),
	}
	return v
}

// flows are a pod's and a process's connections, datagrams of a pod, and a socket to a frontend that is gone.
func flows() []api.Flow {
	bytes := func(n uint64) *uint64 { return &n }
	client := func(kind, name string) api.FlowClient {
		return api.FlowClient{Cluster: "us-east", Node: "us-east-n1", Kind: kind, Name: name}
	}
	near := api.FlowBackend{Addr: addrPort("10.1.1.12:8080"), Cluster: "us-east", Node: "us-east-n2", Pod: "serve-b", Tier: "zone"}
	return []api.Flow{
		{Client: client(api.ClientPod, "shop/web-1"), Service: "default/serve", Frontend: frontend("241.7.3.9:80/TCP"), Port: "http", Backend: near,
			FlowCounts: api.FlowCounts{Open: 12, Sent: bytes(20_480), Received: bytes(7_340_032)}, RTT: 0.4},
		{Client: client(api.ClientPod, "shop/web-1"), Service: "default/far", Frontend: frontend("241.200.1.1:80/TCP"),
			Backend:    api.FlowBackend{Addr: addrPort("10.3.0.21:8080"), Cluster: "eu-central", Node: "eu-central-n1", Pod: "far-x", Tier: "clusterset"},
			FlowCounts: api.FlowCounts{Open: 3, Sent: bytes(120), Received: bytes(0)}, RTT: 82.1},
		{Client: client(api.ClientCgroup, "system.slice/backup.service"), Service: "default/serve", Frontend: frontend("241.7.3.9:53/UDP"), Port: "dns",
			Backend: near, FlowCounts: api.FlowCounts{Open: 1}},
		{Client: client("", ""), Frontend: frontend("241.9.9.9:80/TCP"), Backend: api.FlowBackend{Addr: addrPort("10.9.9.9:80")}, FlowCounts: api.FlowCounts{Open: 1}},
	}
}
