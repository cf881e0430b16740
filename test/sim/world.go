package sim

import (
	"fmt"
	"net/netip"
	"strconv"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/l4"
)

const gossipPort = 7946

func clusterName(c int) clustermesh.ClusterName {
	return clustermesh.ClusterName(fmt.Sprintf("cluster-%03d", c))
}

func nodeName(n int) clustermesh.NodeName { return clustermesh.NodeName(fmt.Sprintf("node-%05d", n)) }

// key returns the key of a name.
func key(name string) *authority.PrivateKey {
	var k authority.PrivateKey
	copy(k[:], name)
	return &k
}

func root(c int) *authority.PrivateKey { return key(fmt.Sprintf("%05d root", c)) }

// pins are those of all clusters: pods in 10.cluster.0.0/16, and machines in 172.16.0.0/12.
func pins(clusters int) authority.Pins {
	out := authority.Pins{}
	for c := range clusters {
		out[clusterName(c)] = authority.Pin{
			Cluster: clusterName(c), Roots: []authority.PublicKey{root(c).Public()}, Namespaces: []string{"*"},
			Pods:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(c), 0, 0}), 16)},
			Nodes: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")},
		}
	}
	return out
}

// service is the name of the Service of a machine's endpoint, and pod that of the endpoint's pod, the nth time.
func (m *Machine) service(e int) string { return "service-" + strconv.Itoa((m.number*10+e)%1000) }
func (m *Machine) pod(e, n int) string  { return m.service(e) + "-" + strconv.Itoa(n) }

// content is what a node publishes the nth time. Each time, another one of its pods is replaced.
func (m *Machine) content(n int) clustermesh.Content {
	pods := [4]byte{10, byte(m.cluster), byte(m.number), 0}
	c := clustermesh.Content{Node: &clustermesh.Node{
		Name: m.Self.Node, Addresses: []netip.Addr{m.addr.Addr()}, GossipPort: gossipPort,
		Locality: clustermesh.Locality{Region: "eu-west-1", Zone: "eu-west-1a"},
		Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4(pods), 24)},
	}}
	pieces := max(m.net.cfg.Endpoints, 1)
	for e := range pieces {
		name := m.service(e)
		pods[3] = byte(e + 2)
		c.Endpoints = append(c.Endpoints, clustermesh.Endpoint{
			Service: clustermesh.ServiceName{Namespace: "default", Name: name}, Addr: netip.AddrFrom4(pods),
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}}, Node: m.Self.Node, Zone: "eu-west-1a",
			Pod: m.pod(e, (n+pieces-1-e)/pieces), Ready: true, Serving: true,
		})
	}
	return c
}

// clusterContent is what a leader publishes of its cluster: which nodes it has, and what it exports.
func (m *Machine) clusterContent() (c clustermesh.Content) {
	for n, p := range m.net.of(m.cluster) {
		if !p.left {
			c.Nodes = append(c.Nodes, nodeName(n))
		}
	}
	for n := range max(m.net.cfg.Endpoints, 1) {
		c.Exports = append(c.Exports, clustermesh.Export{
			Service: clustermesh.ServiceName{Namespace: "default", Name: fmt.Sprint("service-", n)}, Type: clustermesh.ClusterSetIP,
			Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}}, Families: []clustermesh.Family{clustermesh.IPv4},
		})
	}
	return c
}
