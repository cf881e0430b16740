package object

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// ground is which addresses endpoints can have. A user who may write EndpointSlices in a namespace can
// name any address there: a port of the node itself, a Pod of another namespace, or a machine of the
// cluster's network. Other clusters' clients would be led to it, and through the tunnel's filter. So
// a slice counts only as far as Pods, which tenants cannot give addresses, bear it out.
type ground struct {
	// trusted: the objects are files, which root of the machine writes. There are no Pods to ask.
	trusted bool
	// known: pods are all running Pods of this node, by address.
	known bool
	pods  map[netip.Addr][]*Pod
	// machines are the Nodes' own addresses, and virtual the ClusterIPs.
	machines map[netip.Addr]clustermesh.NodeName
	virtual  map[netip.Addr]bool
	prefixes map[clustermesh.NodeName][]netip.Prefix
	// own are the prefixes of this node in the daemon's configuration.
	own []netip.Prefix
	// ranges are those for endpoints that name no node; nil if nothing is pinned.
	ranges []netip.Prefix
}

func newGround(objs Objects, n nodes, services []*Service) *ground {
	g := &ground{
		trusted: objs.Config.ReadOnly, known: objs.All[PodResource], pods: map[netip.Addr][]*Pod{}, machines: map[netip.Addr]clustermesh.NodeName{},
		virtual: map[netip.Addr]bool{}, prefixes: map[clustermesh.NodeName][]netip.Prefix{}, own: objs.Config.NodePrefixes, ranges: objs.Config.Endpoints,
	}
	for _, p := range objs.Pods {
		if p.terminated() {
			continue // another Pod may have its address by now
		}
		for _, ip := range p.ips {
			if a, err := netip.ParseAddr(ip); err == nil {
				g.pods[a] = append(g.pods[a], p)
			}
		}
	}
	for _, node := range n.list {
		g.prefixes[node.Name] = slices.Concat(node.Prefixes, n.prefixes[node.Name])
		for _, a := range node.Addresses {
			g.machines[a] = node.Name
		}
	}
	for _, s := range services {
		for _, ip := range append([]string{s.clusterIP}, s.clusterIPs...) {
			if a, err := netip.ParseAddr(ip); err == nil {
				g.virtual[a] = true
			}
		}
	}
	return g
}

// doubt is why an endpoint is not used; without a code, it is used.
type doubt struct {
	code         problem.Code
	message, try string
}

// doubt returns why an endpoint of a namespace cannot have an address. Node is empty if it names none.
func (g *ground) doubt(namespace string, node clustermesh.NodeName, a netip.Addr) doubt {
	machine, ofNode := g.machines[a]
	in := func(ps []netip.Prefix) bool {
		return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	switch {
	case g.trusted:
		return doubt{}
	case slices.ContainsFunc(g.pods[a], func(p *Pod) bool { return p.Namespace == namespace && (p.hostNetwork || !ofNode) }):
		return doubt{}
	case g.virtual[a]:
		return doubt{problem.EndpointNotPod, fmt.Sprintf("%s is the ClusterIP of a Service", a), "list the addresses of Pods"}
	case node != "" && ofNode:
		return doubt{problem.EndpointNotPod, fmt.Sprintf("%s is an address of Node %s, and no Pod of namespace %s uses the network of its node there", a, machine, namespace),
			"correct the address: on a node's own address, only a Pod of the namespace with hostNetwork can be an endpoint"}
	case node == "" && g.ranges != nil && !in(g.ranges):
		return doubt{problem.EndpointOutside, fmt.Sprintf("it names no node, and %s is in no range of this cluster's pin: pods and endpoints have %v", a, g.ranges),
			"list addresses of Pods; for other machines, add their range to endpoints in this cluster's pin, in every cluster (authority.pinsFile)"}
	case len(g.pods[a]) > 0 && !ofNode:
		return doubt{problem.EndpointNotPod, fmt.Sprintf("%s is the address of a Pod of another namespace", a),
			"correct the address: an endpoint has the address of a Pod of its own namespace"}
	case node != "" && g.known && len(g.prefixes[node])+len(g.own) > 0 && !in(g.prefixes[node]) && !in(g.own):
		return doubt{problem.EndpointNotPod, fmt.Sprintf("no Pod on Node %s has %s, which is in none of its prefixes %v", node, a, slices.Concat(g.prefixes[node], g.own)),
			"correct the address; an endpoint that is no Pod names no node"}
	}
	return doubt{}
}

// doubts collects what is left out of one slice. People see the first for each code, and how many more
// there are: a slice can have a thousand endpoints.
type doubts []doubted

// doubted is the first of a slice's addresses that one kind of doubt left out, and how many more there are.
type doubted struct {
	doubt
	field string
	more  int
}

// add reports whether a doubt leaves an endpoint out.
func (ds *doubts) add(d doubt, field string) bool {
	if d.code == "" {
		return false
	}
	for i := range *ds {
		if (*ds)[i].code == d.code {
			(*ds)[i].more++
			return true
		}
	}
	*ds = append(*ds, doubted{d, field, 0})
	return true
}

func (ds doubts) report(o *objectReport) {
	for _, d := range ds {
		message := d.message + ": not used"
		if d.more > 0 {
			message += fmt.Sprintf(", with %d more addresses of the slice", d.more)
		}
		o.problem(d.code, d.field, message, d.try)
	}
}

// terminated reports whether a Pod has ended.
func (p *Pod) terminated() bool { return p.phase == corev1.PodSucceeded || p.phase == corev1.PodFailed }
