package lab

import (
	"fmt"
	"net/netip"
	"strings"
)

// ClusterNames are the names of clusters, in order. Their number is the largest Size.Clusters.
var ClusterNames = []string{
	"us-east", "us-west", "eu-central", "ap-south", "sa-east", "af-south", "me-central", "ap-east",
}

// MaxNodes is the largest Size.Nodes: a node's index is a byte of its addresses, and the routers
// need the upper part of that range.
const MaxNodes = 40

// The kinds of pods. Every node has Serve and Client; nodes of the last cluster also have Far.
const (
	Serve  = "serve"
	Client = "client"
	Far    = "far"
)

// Size is how large a lab is.
type Size struct {
	// Clusters is 2 to len(ClusterNames).
	Clusters int `json:"clusters"`
	// Nodes is the number of nodes per cluster, 1 to MaxNodes.
	Nodes int `json:"nodes"`
}

// Check returns an error if the size is out of range. It names the flag.
func (s Size) Check() error {
	if s.Clusters < 2 || s.Clusters > len(ClusterNames) {
		return fmt.Errorf("--clusters %d: want 2 to %d", s.Clusters, len(ClusterNames))
	}
	if s.Nodes < 1 || s.Nodes > MaxNodes {
		return fmt.Errorf("--nodes %d: want 1 to %d", s.Nodes, MaxNodes)
	}
	return nil
}

// Topology is the whole lab as data. Every name and address follows from the Size alone.
type Topology struct {
	Clusters []Cluster
}

// Cluster is a region: nodes on one network, and a router that connects it to the core.
type Cluster struct {
	Name string
	// Index counts from 1 and is the C of the addresses 172.31.C.N and 10.C.N.P.
	Index int
	// Underlay is the nodes' network. Gateway is the region router's address in it.
	Underlay netip.Prefix
	Gateway  netip.Addr
	// Uplink is the /30 between region router (.2) and core router (.1).
	Uplink netip.Prefix
	Nodes  []Node
}

// Node is one machine.
type Node struct {
	Cluster string
	Name    string
	// Index counts from 1 within the cluster.
	Index int
	// Underlay is the node's own address and network. Router is its default gateway.
	Underlay netip.Prefix
	Router   netip.Addr
	// PodCIDR holds the pods' addresses. Gateway is the node's own address in it.
	PodCIDR netip.Prefix
	Gateway netip.Addr
	Pods    []Pod
	// Device is the name of the node's WireGuard device. It is unique on the machine, because a
	// userspace device's control socket is a file of this name, which all network namespaces share.
	Device string
}

// Pod is a network namespace behind a node's bridge.
type Pod struct {
	// Kind is Serve, Client or Far. Name is the pod's name in answers and EndpointSlices:
	// "serve-1".
	Kind string
	Name string
	Addr netip.Addr
}

// New returns the topology of a size that has passed Check.
func New(size Size) Topology {
	var t Topology
	device := 0
	for c := 1; c <= size.Clusters; c++ {
		cluster := Cluster{
			Name:     ClusterNames[c-1],
			Index:    c,
			Underlay: prefix4(172, 31, c, 0, 24),
			Gateway:  addr4(172, 31, c, 254),
			Uplink:   prefix4(172, 30, c, 0, 30),
		}
		for n := 1; n <= size.Nodes; n++ {
			device++
			node := newNode(cluster, n, c == size.Clusters)
			node.Device = fmt.Sprintf("strait%d", device)
			cluster.Nodes = append(cluster.Nodes, node)
		}
		t.Clusters = append(t.Clusters, cluster)
	}
	return t
}

func newNode(cluster Cluster, n int, last bool) Node {
	c := cluster.Index
	node := Node{
		Cluster:  cluster.Name,
		Name:     fmt.Sprintf("%s-%d", cluster.Name, n),
		Index:    n,
		Underlay: prefix4(172, 31, c, n, 24),
		Router:   cluster.Gateway,
		PodCIDR:  prefix4(10, c, n, 0, 24),
		Gateway:  addr4(10, c, n, 1),
	}
	pod := func(kind string, host int) {
		node.Pods = append(node.Pods, Pod{kind, fmt.Sprintf("%s-%d", kind, n), addr4(10, c, n, host)})
	}
	pod(Serve, 10)
	pod(Client, 20)
	if last {
		pod(Far, 30)
	}
	return node
}

func addr4(a, b, c, d int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), byte(d)})
}

func prefix4(a, b, c, d, bits int) netip.Prefix { return netip.PrefixFrom(addr4(a, b, c, d), bits) }

// Nodes returns the nodes of all clusters in order.
func (t Topology) Nodes() []Node {
	var out []Node
	for _, c := range t.Clusters {
		out = append(out, c.Nodes...)
	}
	return out
}

// Pod returns the node's pod of a kind.
func (n Node) Pod(kind string) (Pod, bool) {
	for _, p := range n.Pods {
		if p.Kind == kind {
			return p, true
		}
	}
	return Pod{}, false
}

// Resolvers returns the DNS servers for the node's processes: its own daemon, then a neighbour's.
func (c Cluster) Resolvers(n Node) []netip.Addr {
	out := []netip.Addr{n.Gateway}
	if len(c.Nodes) > 1 {
		out = append(out, c.Nodes[n.Index%len(c.Nodes)].Gateway)
	}
	return out
}

// Place is where a process runs: a node ("us-east-1"), or one of its pods ("us-east-1/client").
type Place struct {
	Node string
	// Pod is the pod's kind; "" means the node itself, in its host network.
	Pod string
}

func (p Place) String() string {
	if p.Pod == "" {
		return p.Node
	}
	return p.Node + "/" + p.Pod
}

// Find parses the text form of a Place and checks that the place exists.
func (t Topology) Find(text string) (Place, error) {
	node, pod, inPod := strings.Cut(text, "/")
	for _, n := range t.Nodes() {
		if n.Name != node {
			continue
		}
		if _, ok := n.Pod(pod); inPod && !ok {
			return Place{}, fmt.Errorf("node %s has no pod %q; it has %s", node, pod, strings.Join(n.podKinds(), ", "))
		}
		return Place{node, pod}, nil
	}
	return Place{}, fmt.Errorf("no node %q in the demo; it has %s", node, strings.Join(t.nodeNames(), ", "))
}

func (n Node) podKinds() []string {
	var out []string
	for _, p := range n.Pods {
		out = append(out, p.Kind)
	}
	return out
}

func (t Topology) nodeNames() []string {
	var out []string
	for _, n := range t.Nodes() {
		out = append(out, n.Name)
	}
	return out
}
