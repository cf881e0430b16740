package scale

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/l4"
)

// gossipOf is where the daemon of a node listens.
func gossipOf(node int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1, byte(node + 1)}), 7946)
}

// runPeers says by gossip what the daemons of all nodes but the first would, until ctx is done.
func runPeers(ctx context.Context, w *world, uid string, key []byte) error {
	g, ctx := errgroup.WithContext(ctx)
	for n := 1; n < w.nodes(); n++ {
		peer, err := gossip.New(gossip.Config{
			Self: clustermesh.Origin{Cluster: "c1", Node: clustermesh.NodeName(nodeName(n))}, UID: uid,
			Bind: gossipOf(n), Key: key, Seeds: []string{gossipOf(0).String()},
			Lead: func() (bool, uint64) { return false, 0 },
		})
		if err != nil {
			return fmt.Errorf("gossip of %s: %w", nodeName(n), err)
		}
		peer.Publish(w.content(n))
		g.Go(func() error { return peer.Run(ctx) })
	}
	return g.Wait()
}

// content is what a node's daemon would publish.
func (w *world) content(node int) clustermesh.Content {
	name := clustermesh.NodeName(nodeName(node))
	c := clustermesh.Content{Node: &clustermesh.Node{
		Name: name, Locality: clustermesh.Locality{Zone: "zone-1"}, Addresses: []netip.Addr{nodeAddr(node)},
		Prefixes: []netip.Prefix{nodePods(node)}, GossipPort: gossipOf(node).Port(),
	}}
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
