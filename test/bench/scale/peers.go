package scale

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/l4"
)

// gossipOf returns the address at which the gossip of a node of c1 listens.
func gossipOf(node int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, byte(node + 1)}), 7946)
}

// neighbour returns the gossip of the quick node. It also passes on the records of all other nodes
// of the cluster except the first: it knows them from an earlier life, as in c2. Running all of
// these daemons would take more of this machine than straitd does.
func (m *measurement) neighbour(uid string) (*gossip.Gossip, error) {
	quick := m.world.quick()
	var held []clustermesh.Record
	for n := 1; n < quick; n++ {
		held = append(held, heldRecord("c1", uid, m.world.content(n)))
	}
	dir := filepath.Join(m.Dir, "neighbour")
	if err := writeRecords(dir, held); err != nil {
		return nil, err
	}
	g, err := gossip.New(gossip.Config{
		Self: clustermesh.Origin{Cluster: "c1", Node: clustermesh.NodeName(nodeName(quick))}, UID: uid, StateDir: dir,
		Bind: gossipOf(quick), Keys: m.keys, Seeds: []string{gossipOf(0).String()},
		Lead: func() (bool, uint64) { return false, 0 }, Log: m.log,
	})
	if err != nil {
		return nil, fmt.Errorf("gossip of %s: %w", nodeName(quick), err)
	}
	g.Publish(m.world.content(quick))
	return g, forget(dir)
}

// content returns what a node's daemon would publish.
func (w *world) content(node int) clustermesh.Content {
	name := clustermesh.NodeName(nodeName(node))
	c := clustermesh.Content{Node: &clustermesh.Node{
		Name: name, Locality: clustermesh.Locality{Zone: "zone-1"}, Addresses: []netip.Addr{nodeAddr(node)},
		Prefixes: []netip.Prefix{nodePods(node)},
	}}
	if node == w.quick() {
		c.Node.GossipPort = gossipOf(node).Port() // without one, straitd does not look for a daemon
	}
	for i := range w.services {
		for e := range w.endpoints {
			on, addr, pod := w.pod(i, e)
			if on != node {
				continue
			}
			c.Endpoints = append(c.Endpoints, clustermesh.Endpoint{
				Service: clustermesh.ServiceName{Namespace: namespaceOf(i), Name: serviceName(i)}, Addr: addr,
				Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
				Node:  name, Zone: "zone-1", Pod: pod, Ready: true, Serving: true,
			})
		}
	}
	return c
}
