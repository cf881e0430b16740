// Package plan is the bridge between the clusterset and the kernel: from the state of the clusterset it
// computes what one node's kernel should hold, and why.
//
// Input is State, Self and Config; output is a Result. Pure, and the same on every call with the same
// input. It imports both clustermesh and datapath and must not know any shell.
package plan

import (
	"fmt"
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
	// CIDRs are the ranges for ClusterSetIPs, at most one of each IP family. None where the cluster gives them out
	// itself, by derived Services: then its Allocations are in force as they are.
	CIDRs []netip.Prefix
	// Barred namespaces have no imports here.
	Barred clustermesh.Barred
	// Mesh is false where pods of other clusters are routable without strait.
	Mesh bool
}

// Result is a plan: what the kernel should hold and what people and DNS should see.
type Result struct {
	Desired datapath.Desired
	Imports []Import
	// Globals are the own cluster's global services, sorted.
	Globals []Global
	// Allocations are the ClusterSetIPs as this node's cluster should have them: its leader publishes them.
	Allocations []clustermesh.Allocation
	Problems    []clustermesh.Problem
}

// Import is an import with its addresses and, per address and port, the choice of endpoints.
type Import struct {
	clustermesh.Import
	IPs       []netip.Addr
	Frontends []Frontend
	// Endpoints are all endpoints of all exporting clusters, for DNS names of headless services; an address once per
	// cluster.
	Endpoints []Endpoint
	// Exports are what the import is made of.
	Exports []clustermesh.ClusterExport
}

// Global is a global service of the own cluster with, per address and port, the choice of endpoints.
type Global struct {
	clustermesh.Global
	// Sharers are the other clusters whose endpoints it may use, sorted.
	Sharers   []clustermesh.ClusterName
	Frontends []Frontend
	// Endpoints are the own cluster's and those of the sharers.
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
	p := &planner{state: s, self: self, config: c, endpoints: endpoints(s), exports: s.Exports(), at: map[netip.Addr]int{}}
	var r Result
	r.Problems = p.bar()
	imports, problems := clustermesh.Imports(p.exports)
	r.Problems = append(r.Problems, problems...)
	own := p.own()
	if len(c.CIDRs) == 0 {
		r.Allocations = own.Allocations
	}
	for _, cidr := range c.CIDRs {
		a, problems := clustermesh.Allocate(cidr, own.Allocations, imports)
		r.Allocations = append(r.Allocations, a...)
		r.Problems = append(r.Problems, problems...)
	}
	ips := p.inForce()
	for _, i := range imports {
		pi, problems := p.plan(i, ips[i.Service])
		r.Imports = append(r.Imports, pi)
		r.Problems = append(r.Problems, problems...)
		for _, f := range pi.Frontends {
			r.Desired.Frontends = append(r.Desired.Frontends, desired(i.Service, i.AffinitySeconds, f))
		}
	}
	slices.SortFunc(r.Imports, func(a, b Import) int { return a.Service.Compare(b.Service) })
	shared := p.shared()
	for _, g := range own.Globals {
		pg, problems := p.global(g, shared[g.Service])
		r.Globals = append(r.Globals, pg)
		r.Problems = append(r.Problems, problems...)
		for _, f := range pg.Frontends {
			r.Desired.Frontends = append(r.Desired.Frontends, desired(g.Service, g.AffinitySeconds, f))
		}
	}
	r.Desired.Frontends, problems = unique(r.Desired.Frontends)
	r.Problems = append(r.Problems, problems...)
	r.Desired.Peers, problems = p.peers()
	r.Problems = clustermesh.SortProblems(append(r.Problems, problems...))
	r.Desired.Sources = p.sources()
	r.Desired.Routes = p.routes(r.Desired.Peers, r.Desired.Sources.Node)
	r.Desired.Gone = p.gone()
	return r
}

// unique sorts frontends. An address that two services claim would be the kernel's to decide, so the first has it.
func unique(fs []datapath.Frontend) (out []datapath.Frontend, problems []clustermesh.Problem) {
	slices.SortStableFunc(fs, func(a, b datapath.Frontend) int { return a.Addr.Compare(b.Addr) })
	for _, f := range fs {
		if n := len(out) - 1; n >= 0 && out[n].Addr == f.Addr {
			problems = append(problems, clustermesh.Problem{
				Object:  "Service " + f.Service,
				Message: fmt.Sprintf("%s is already the address of %s: not programmed for this service", f.Addr, out[n].Service),
				Try:     "give each Service a ClusterIP of its own, outside clustersetCIDRs",
			})
			continue
		}
		out = append(out, f)
	}
	return out, problems
}

type planner struct {
	state     clustermesh.State
	self      Self
	config    Config
	endpoints map[clustermesh.ServiceName][]Endpoint
	exports   map[clustermesh.ServiceName][]clustermesh.ClusterExport
	at        map[netip.Addr]int // of admit, kept to be used again
}

// own is what the own cluster's leader says.
func (p *planner) own() clustermesh.Content {
	return p.state.Records[clustermesh.Origin{Cluster: p.self.Cluster}].Content
}

// bar drops the exports of namespaces that are barred here, whatever other clusters do.
func (p *planner) bar() (problems []clustermesh.Problem) {
	for s, es := range p.exports {
		why := p.config.Barred.Why(s)
		if why == "" {
			continue
		}
		delete(p.exports, s)
		problems = append(problems, clustermesh.Problem{
			Object:  "ServiceImport " + s.String(),
			Message: fmt.Sprintf("%s: not imported, though cluster %s exports it", why, es[0].Cluster),
			Try:     "use another namespace, or delete the ServiceExport there",
			Warning: true,
		})
	}
	return problems
}

// inForce returns the addresses that the cluster's leader gave out. Before it has, an import has none:
// every node of a cluster must use the same.
func (p *planner) inForce() map[clustermesh.ServiceName][]netip.Addr {
	own := p.own().Allocations
	ips := make(map[clustermesh.ServiceName][]netip.Addr, len(own))
	for _, a := range own {
		if len(p.config.CIDRs) == 0 || slices.ContainsFunc(p.config.CIDRs, func(c netip.Prefix) bool { return c.Contains(a.IP) }) {
			ips[a.Service] = append(ips[a.Service], a.IP)
		}
	}
	return ips
}

// endpoints gathers the endpoints of all origins by service, in a stable order. Records have a service's endpoints
// in a row, so that it is looked up once per row.
func endpoints(s clustermesh.State) map[clustermesh.ServiceName][]Endpoint {
	out := map[clustermesh.ServiceName][]Endpoint{}
	for _, o := range s.Origins() {
		dead := o.Node != "" && s.Dead(o)
		for rest := s.Records[o].Content.Endpoints; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].Service == rest[0].Service {
				n++
			}
			es := slices.Grow(out[rest[0].Service], n)
			for _, e := range rest[:n] {
				es = append(es, Endpoint{e, o.Cluster, dead})
			}
			out[rest[0].Service], rest = es, rest[n:]
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

func desired(s clustermesh.ServiceName, affinitySeconds uint32, f Frontend) datapath.Frontend {
	d := datapath.Frontend{Addr: f.Addr, Service: s.String(), AffinitySeconds: affinitySeconds}
	for _, v := range f.Choice.Verdicts {
		if v.Weight > 0 {
			d.Backends = append(d.Backends, datapath.Backend{IP: v.Addr.Addr(), Port: v.Addr.Port(), Weight: v.Weight})
		}
	}
	d.Backends = datapath.SortBackends(d.Backends)
	return d
}
