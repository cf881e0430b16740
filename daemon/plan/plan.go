// Package plan is the bridge between the clusterset and the kernel: from the state of the clusterset it
// computes what one node's kernel should hold, and why.
//
// Input is State, Self and Config; output is a Result. Pure, and the same on every call with the same
// input. It imports both clustermesh and datapath and must not know any shell.
package plan

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// Self is the node for which the plan is made.
type Self struct {
	Cluster clustermesh.ClusterName
	Node    clustermesh.NodeName
}

// Origin is the node as a writer of records.
func (s Self) Origin() clustermesh.Origin {
	return clustermesh.Origin{Cluster: s.Cluster, Node: s.Node}
}

// Config is what a plan depends on besides the state.
type Config struct {
	// CIDRs are the ranges for ClusterSetIPs, at most one of each IP family.
	CIDRs []netip.Prefix
	// Mesh is false where pods of other clusters are routable without strait.
	Mesh bool
}

// Result is a plan: what the kernel should hold and what people and DNS should see.
type Result struct {
	Desired datapath.Desired
	Imports []Import
	// Allocations are the ClusterSetIPs as this node's cluster should have them: its leader publishes them.
	Allocations []clustermesh.Allocation
	Problems    []clustermesh.Problem
}

// Import is an import with its addresses and, per address and port, the choice of endpoints.
type Import struct {
	clustermesh.Import
	IPs       []netip.Addr
	Frontends []Frontend
	// Endpoints are all endpoints of all exporting clusters, for DNS names of headless services.
	Endpoints []Endpoint
}

// Frontend is one address and port of an import, with the verdict on every endpoint.
type Frontend struct {
	Addr   l4.Addr
	Port   clustermesh.ServicePort
	Choice locality.Choice
}

// Endpoint is an endpoint with the cluster that it is in, and its node's standing.
type Endpoint struct {
	clustermesh.Endpoint
	Cluster clustermesh.ClusterName
	Dead    bool
}

// Plan computes the plan for one node.
func Plan(s clustermesh.State, self Self, c Config) Result {
	p := &planner{state: s, self: self, config: c, endpoints: endpoints(s), exports: s.Exports()}
	var r Result
	imports, problems := clustermesh.Imports(p.exports)
	r.Problems = append(r.Problems, problems...)
	for _, cidr := range c.CIDRs {
		a, problems := clustermesh.Allocate(cidr, s.Records[clustermesh.Origin{Cluster: self.Cluster}].Content.Allocations, imports)
		r.Allocations = append(r.Allocations, a...)
		r.Problems = append(r.Problems, problems...)
	}
	ips := p.inForce()
	for _, i := range imports {
		pi, problems := p.plan(i, ips[i.Service])
		r.Imports = append(r.Imports, pi)
		r.Problems = append(r.Problems, problems...)
		for _, f := range pi.Frontends {
			r.Desired.Frontends = append(r.Desired.Frontends, desired(i, f))
		}
	}
	slices.SortFunc(r.Imports, func(a, b Import) int { return a.Service.Compare(b.Service) })
	slices.SortFunc(r.Desired.Frontends, func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	r.Desired.Peers, problems = p.peers()
	r.Problems = clustermesh.SortProblems(append(r.Problems, problems...))
	r.Desired.Routes = p.routes(r.Desired.Peers)
	r.Desired.Gone = p.gone()
	return r
}

type planner struct {
	state     clustermesh.State
	self      Self
	config    Config
	endpoints map[clustermesh.ServiceName][]Endpoint
	exports   map[clustermesh.ServiceName][]clustermesh.ClusterExport
}

// inForce returns the addresses that the cluster's leader gave out. Before it has, an import has none:
// every node of a cluster must use the same.
func (p *planner) inForce() map[clustermesh.ServiceName][]netip.Addr {
	ips := map[clustermesh.ServiceName][]netip.Addr{}
	for _, a := range p.state.Records[clustermesh.Origin{Cluster: p.self.Cluster}].Content.Allocations {
		if slices.ContainsFunc(p.config.CIDRs, func(c netip.Prefix) bool { return c.Contains(a.IP) }) {
			ips[a.Service] = append(ips[a.Service], a.IP)
		}
	}
	return ips
}

// endpoints gathers the endpoints of all origins by service, in a stable order.
func endpoints(s clustermesh.State) map[clustermesh.ServiceName][]Endpoint {
	out := map[clustermesh.ServiceName][]Endpoint{}
	for _, o := range s.Origins() {
		dead := o.Node != "" && s.Dead(o)
		for _, e := range s.Records[o].Content.Endpoints {
			out[e.Service] = append(out[e.Service], Endpoint{e, o.Cluster, dead})
		}
	}
	return out
}

// gone returns the addresses of the pods on dead machines.
func (p *planner) gone() []netip.Addr {
	var out []netip.Addr
	for _, es := range p.endpoints {
		for _, e := range es {
			if e.Dead {
				out = append(out, e.Addr)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

func desired(i clustermesh.Import, f Frontend) datapath.Frontend {
	d := datapath.Frontend{Addr: f.Addr, Service: i.Service.String(), AffinitySeconds: i.AffinitySeconds}
	for _, v := range f.Choice.Verdicts {
		if v.Weight > 0 {
			d.Backends = append(d.Backends, datapath.Backend{IP: v.Addr.Addr(), Port: v.Addr.Port(), Weight: v.Weight})
		}
	}
	d.Backends = datapath.SortBackends(d.Backends)
	return d
}
