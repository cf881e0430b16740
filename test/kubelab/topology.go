package kubelab

import (
	"fmt"
	"net/netip"
)

// The size of the largest lab. Names and addresses have one digit each for clusters and nodes.
const (
	MaxClusters = 3
	MaxNodes    = 9
)

// Topology is the whole lab as data. Every name and address follows from its size.
type Topology struct {
	Clusters []Cluster
}

// Cluster is the plan of one Kubernetes cluster.
type Cluster struct {
	// Name is c1, c2 or c3. It is also the context in the kubeconfig.
	Name string
	// Index counts from 1 and is the C of the addresses 172.31.C.N, 10.1C.N.P and 10.20C.x.y.
	Index int
	// Underlay is the nodes' network. Gateway is the fabric's address in it, where the API server
	// listens.
	Underlay netip.Prefix
	Gateway  netip.Addr
	// Services is the range of ClusterIPs. DNS is the ClusterIP of the cluster's name server.
	// Services6 is the second range of a dual-stack cluster.
	Services  netip.Prefix
	Services6 netip.Prefix
	DNS       netip.Addr
	// PodCIDRs says whether Node.spec.podCIDRs is set. If it is not, only the nodes' CNI files have
	// the ranges.
	PodCIDRs bool
	Nodes    []Node
}

// Node is the plan of one machine.
type Node struct {
	Cluster string
	// Name is, for example, c1n1. It names the Node object and the cable, and ends the network
	// namespace's name.
	Name string
	// Zone is the node's topology zone; its region is its cluster.
	Zone string
	// Addr is the node's InternalIP.
	Addr netip.Addr
	// Pods is the range of the node's pod addresses.
	Pods netip.Prefix
}

// NewTopology returns the topology of a size. Clusters named in withoutPodCIDRs have no podCIDRs in
// their Node objects.
func NewTopology(clusters, nodes int, withoutPodCIDRs ...string) (Topology, error) {
	if clusters < 1 || clusters > MaxClusters {
		return Topology{}, fmt.Errorf("%d clusters: want 1 to %d", clusters, MaxClusters)
	}
	if nodes < 0 || nodes > MaxNodes {
		return Topology{}, fmt.Errorf("%d nodes per cluster: want 0 (API servers only) to %d", nodes, MaxNodes)
	}
	var t Topology
	for i := 1; i <= clusters; i++ {
		c := Cluster{
			Name:      fmt.Sprintf("c%d", i),
			Index:     i,
			Underlay:  prefix(172, 31, i, 0, 24),
			Gateway:   addr(172, 31, i, 254),
			Services:  prefix(10, 200+i, 0, 0, 16),
			DNS:       addr(10, 200+i, 0, 10),
			Services6: netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d::/112", 200+i)),
			PodCIDRs:  true,
		}
		t.Clusters = append(t.Clusters, c)
	}
	for _, name := range withoutPodCIDRs {
		c, err := t.Cluster(name)
		if err != nil {
			return Topology{}, fmt.Errorf("without podCIDRs: %w", err)
		}
		c.PodCIDRs = false
	}
	for i := range t.Clusters {
		for j := 1; j <= nodes; j++ {
			t.Clusters[i].Nodes = append(t.Clusters[i].Nodes, newNode(t.Clusters[i], j))
		}
	}
	return t, nil
}

func newNode(c Cluster, j int) Node {
	n := Node{
		Cluster: c.Name,
		Name:    fmt.Sprintf("%sn%d", c.Name, j),
		Zone:    fmt.Sprintf("%s-%c", c.Name, rune('a'+j-1)),
		Addr:    addr(172, 31, c.Index, j),
		Pods:    prefix(10, 10+c.Index, j, 0, 24),
	}
	if !c.PodCIDRs {
		// Small blocks, as some IPAMs assign them, so that a node's range cannot be guessed by a
		// rule.
		n.Pods = prefix(10, 10+c.Index, j/4, j%4*64, 26)
	}
	return n
}

func addr(a, b, c, d int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), byte(d)})
}

func prefix(a, b, c, d, bits int) netip.Prefix { return netip.PrefixFrom(addr(a, b, c, d), bits) }

// Cluster returns the cluster with this name.
func (t Topology) Cluster(name string) (*Cluster, error) {
	for i := range t.Clusters {
		if t.Clusters[i].Name == name {
			return &t.Clusters[i], nil
		}
	}
	return nil, fmt.Errorf("no cluster %q in the lab: it has c1 to c%d", name, len(t.Clusters))
}

// Node returns the cluster's node with this name.
func (c Cluster) Node(name string) (Node, error) {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("no node %q in cluster %s: it has %sn1 to %sn%d", name, c.Name, c.Name, c.Name, len(c.Nodes))
}

// server returns the API server's address in the fabric.
func (c Cluster) server() netip.AddrPort { return netip.AddrPortFrom(c.Gateway, 6443) }

// apiService returns the ClusterIP of the Service default/kubernetes.
func (c Cluster) apiService() netip.Addr { return c.Services.Addr().Next() }
