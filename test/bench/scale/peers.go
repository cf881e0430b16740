package scale

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/l4"
)

// gossipOf is where the daemon of a node listens.
func gossipOf(node int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, byte(node + 1)}), 7946)
}

// neighbour is the daemon of the quick node, and says by gossip what those of all other nodes of the cluster
// but the first would: it knows their records from an earlier life, as the daemons of c2 do. All of these
// daemons would take more of this machine than straitd.
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
		Bind: gossipOf(quick), Key: m.key, Seeds: []string{gossipOf(0).String()},
		Lead: func() (bool, uint64) { return false, 0 }, Log: m.log,
	})
	if err != nil {
		return nil, fmt.Errorf("gossip of %s: %w", nodeName(quick), err)
	}
	g.Publish(m.world.content(quick))
	return g, forget(dir)
}

// content is what a node's daemon would publish.
func (w *world) content(node int) clustermesh.Content {
	name := clustermesh.NodeName(nodeName(node))
	c := clustermesh.Content{Node: &clustermesh.Node{
		Name: name, Locality: clustermesh.Locality{Zone: "zone-1"}, Addresses: []netip.Addr{nodeAddr(node)},
		Prefixes: []netip.Prefix{nodePods(node)},
	}}
	if node == w.quick() {
		c.Node.GossipPort = gossipOf(node).Port() // straitd looks for no daemon of the others
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
