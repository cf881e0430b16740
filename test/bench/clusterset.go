package main

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

// planner is the node that plans: one of cluster a.
var planner = plan.Self{Cluster: "a", Node: "n0"}

// planned is the daemon's default configuration, as far as a plan depends on it.
var planned = plan.Config{
	CIDRs: []netip.Prefix{serviceRange}, Mesh: true,
	Locality: plan.Locality{Factor: 1.4, Ramp: 10 * time.Second},
}

// inputs are what that node plans from.
func inputs(s clusterset, now time.Time) plan.Inputs {
	return plan.Inputs{State: s.State, Self: planner, Config: planned, Now: now}
}

// clusterset is the state of two clusters, a and b, that both serve the same services. Half of each
// service's endpoints are in each cluster, and a node has about 100.
type clusterset struct{ clustermesh.State }

func newClusterset(services, endpoints int) clusterset {
	c := clusterset{clustermesh.State{
		Records: clustermesh.ByOrigin[clustermesh.Record]{}, Contacts: clustermesh.ByOrigin[clustermesh.Contact]{},
	}}
	nodes := max(services*endpoints/200, 2) // in each cluster
	for at, cluster := range []clustermesh.ClusterName{"a", "b"} {
		contents := make([]clustermesh.Content, nodes)
		for n := range nodes {
			contents[n].Node = newNode(cluster, at*nodes+n, n)
		}
		var whole clustermesh.Content
		for i := range services {
			port := clustermesh.ServicePort{Name: "http", Proto: l4.TCP, Port: servicePort}
			whole.Exports = append(whole.Exports, clustermesh.Export{Service: serviceName(i), Type: clustermesh.ClusterSetIP,
				Ports: []clustermesh.ServicePort{port}, Families: []clustermesh.Family{clustermesh.IPv4}, Created: int64(at)})
			whole.Allocations = append(whole.Allocations, clustermesh.Allocation{Service: serviceName(i), IP: nth(serviceRange.Addr(), 256+i)})
			for e := range endpoints / 2 {
				addPod(&contents[(i+e*7)%nodes], serviceName(i))
			}
		}
		c.put(clustermesh.Origin{Cluster: cluster}, whole)
		for _, content := range contents {
			c.put(clustermesh.Origin{Cluster: cluster, Node: content.Node.Name}, content)
		}
	}
	return c
}

func serviceName(i int) clustermesh.ServiceName {
	return clustermesh.ServiceName{Namespace: "bench", Name: fmt.Sprintf("s%05d", i)}
}

// newNode returns number n of a cluster's nodes, and number serial of all.
func newNode(cluster clustermesh.ClusterName, serial, n int) *clustermesh.Node {
	pods := nth(podRange.Addr(), 256*(serial+1))
	return &clustermesh.Node{
		Name: clustermesh.NodeName(fmt.Sprintf("n%d", n)), Locality: clustermesh.Locality{Region: string(cluster)},
		Addresses: []netip.Addr{nth(netip.MustParseAddr("172.16.0.0"), serial+1)},
		Prefixes:  []netip.Prefix{netip.PrefixFrom(pods, 24)}, Inside: pods.Next(),
		PublicKey: key.Public{byte(serial >> 8), byte(serial), 1}, WireGuardPort: 51820,
	}
}

// addPod adds a ready pod of a service to those of a node.
func addPod(c *clustermesh.Content, service clustermesh.ServiceName) {
	c.Endpoints = append(c.Endpoints, clustermesh.Endpoint{
		Service: service, Addr: nth(c.Node.Prefixes[0].Addr(), 2+len(c.Endpoints)), Node: c.Node.Name, Ready: true, Serving: true,
		Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: podPort}},
	})
}

func (c *clusterset) put(o clustermesh.Origin, content clustermesh.Content) {
	c.Records = c.Records.With(o, clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: content})
	if o.Node != "" {
		c.Contacts = c.Contacts.With(o, clustermesh.Alive)
	}
}

// changed returns the state with other content in the records that of matches. The state itself stays
// as it is, as for the daemon.
func (c clusterset) changed(of func(clustermesh.Origin) bool, f func(*clustermesh.Content)) clusterset {
	for o, r := range c.Records.All() {
		if of(o) {
			r.Content.Endpoints, r.Content.Exports = slices.Clone(r.Content.Endpoints), slices.Clone(r.Content.Exports)
			f(&r.Content)
			c.Records = c.Records.With(o, r)
		}
	}
	return c
}

// every matches the records of all clusters and nodes.
func every(clustermesh.Origin) bool { return true }

// thirdUnready makes each third pod of each node unready.
func thirdUnready(c *clustermesh.Content) {
	for i := range c.Endpoints {
		setReady(&c.Endpoints[i], i%3 > 0)
	}
}

func setReady(e *clustermesh.Endpoint, ready bool) { e.Ready, e.Serving = ready, ready }

// weigh makes every service of a cluster ask for weights, and for more ready pods than there are.
func weigh(c *clustermesh.Content) {
	for i := range c.Exports {
		c.Exports[i].Routing = &clustermesh.Routing{
			Weights:  []clustermesh.ClusterWeight{{Cluster: "a", Weight: 90}, {Cluster: "b", Weight: 10}},
			MinReady: clustermesh.MinReady{Percent: 80},
		}
	}
}
