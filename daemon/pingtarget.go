package daemon

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
)

// maxPingWays bounds the addresses of a service or pod that are connected to.
const maxPingWays = 8

// pingTarget is what a ping asks, and how.
type pingTarget struct {
	// kind is "node", "pod" or "service".
	kind, name string
	// origin is the node; zero for a service.
	origin clustermesh.Origin
	// gossip is its gossip port on the underlay, and tunnelPort that of WireGuard there. NoTunnel is
	// why no tunnel leads to it; empty if one does.
	gossip     netip.AddrPort
	tunnelPort uint16
	noTunnel   string
	// ways are the connections to make besides, and addrs where each leads. Sent is how often.
	ways  []api.Way
	addrs []netip.AddrPort
}

func (t pingTarget) node() string {
	if t.origin.Node == "" {
		return ""
	}
	return t.origin.String()
}

func (t *pingTarget) connect(way string, to netip.AddrPort, node string, times int) {
	if len(t.addrs) < maxPingWays && !slices.Contains(t.addrs, to) {
		t.ways, t.addrs = append(t.ways, api.Way{Way: way, Node: node, Sent: times}), append(t.addrs, to)
	}
}

// pingTarget finds what a text names: a node, a service, or a pod, in this order. It refuses what is
// none of them, so that a ping reaches no other machines.
func (v viewer) pingTarget(text string, services []api.Service) (pingTarget, error) {
	name, port, withPort := strings.Cut(text, ":")
	if _, err := netip.ParseAddr(text); err == nil {
		name, withPort = text, false
	}
	isNode := strings.Count(name, "/") <= 1 && v.isNode(name)
	if i := slices.IndexFunc(services, func(s api.Service) bool { return s.Name == name }); i >= 0 && !isNode {
		return serviceTarget(services[i], port)
	}
	if withPort {
		return pingTarget{}, problem.Refuse("list the services: strait services", "no cluster exports a service %s", name)
	}
	self, err := plan.From(v.state, v.self, name)
	switch {
	case name == "":
		return pingTarget{}, problem.Refuse("write ?to=NODE, CLUSTER/NODE, NAMESPACE/SERVICE, NAMESPACE/POD or a pod's address", "the query names nothing to ping")
	case err != nil:
		return pingTarget{}, problem.Refuse("strait nodes and strait services list what can be pinged; a pod without a service has an address",
			"there is no node, service or pod %s", text)
	}
	t := pingTarget{kind: "node", origin: self.Origin()}
	t.name = t.origin.String()
	if !isNode {
		t.kind, t.name = "pod", text
		t.pod(text, services)
	}
	if self == v.self {
		if len(t.ways) == 0 {
			return t, problem.Refuse("name another, or ask another node with --node", "%s is on the node that is asked", text)
		}
		t.origin = clustermesh.Origin{} // no way leads there but to the pod
		return t, nil
	}
	t.lead(v)
	return t, nil
}

func (v viewer) isNode(name string) bool {
	cluster, node, both := strings.Cut(name, "/")
	if !both {
		cluster, node = string(v.self.Cluster), name
	}
	o := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
	r, is := v.state.Records.Lookup(o)
	return node != "" && (o == v.self.Origin() || is && r.Content.Node != nil)
}

// lead sets the ways to the node itself.
func (t *pingTarget) lead(v viewer) {
	n := v.state.Records.Get(t.origin).Content.Node
	if n == nil {
		return
	}
	t.tunnelPort = n.WireGuardPort
	if len(n.Addresses) > 0 {
		t.gossip = netip.AddrPortFrom(n.Addresses[0], n.GossipPort)
	}
	if e, is := v.result.Mesh.End(t.origin); is {
		t.noTunnel = e.Why
		if e.Underlay.IsValid() { // the address to which the tunnel leads, to compare like with like
			t.gossip = netip.AddrPortFrom(e.Underlay.Addr(), n.GossipPort)
		}
	}
}

// pod adds the TCP ports of a pod that is an endpoint.
func (t *pingTarget) pod(text string, services []api.Service) {
	for _, s := range services {
		namespace, _, _ := strings.Cut(s.Name, "/")
		for _, f := range s.Frontends {
			for _, e := range f.Endpoints {
				short := namespace + "/" + e.Pod
				named := e.Pod != "" && (text == short || text == e.Cluster+"/"+short) || e.Addr.Addr().String() == text
				if named && f.Addr.Proto == l4.TCP && (clustermesh.Origin{Cluster: clustermesh.ClusterName(e.Cluster), Node: clustermesh.NodeName(e.Node)}) == t.origin {
					t.connect(api.WayPod, e.Addr, e.Cluster+"/"+e.Node, pingTimes)
				}
			}
		}
	}
}

// serviceTarget leads to a service's frontends, and to the endpoints that it uses.
func serviceTarget(s api.Service, port string) (pingTarget, error) {
	t := pingTarget{kind: "service", name: s.Name}
	frontends := slices.DeleteFunc(slices.Clone(s.Frontends), func(f api.Frontend) bool {
		return port != "" && f.Port != port && strconv.Itoa(int(f.Addr.Port)) != port
	})
	if port != "" && len(frontends) == 0 {
		return t, problem.Refuse("see its ports: strait explain "+s.Name, "service %s has no port %s", s.Name, port)
	}
	frontends = slices.DeleteFunc(frontends, func(f api.Frontend) bool { return f.Addr.Proto != l4.TCP })
	for _, f := range frontends[:min(len(frontends), maxPingWays/2)] {
		if f.Addr.IP.IsValid() { // headless services have no address
			t.connect(api.WayFrontend, netip.AddrPortFrom(f.Addr.IP, f.Addr.Port), "", pingTimes)
		}
	}
	for _, f := range frontends {
		for _, e := range f.Endpoints {
			if e.Share > 0 {
				t.connect(api.WayEndpoint, e.Addr, e.Cluster+"/"+e.Node, 1)
			}
		}
	}
	return t, nil
}
