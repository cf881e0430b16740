// Package plan is the bridge between the clusterset and the kernel: from the state of the clusterset it
// computes what one node's kernel should hold, and why.
//
// Input is State, Self and Config; output is a Result. Pure, and the same on every call with the same
// input; a Planner remembers what it planned last only to be quicker. It imports both clustermesh and datapath and must
// not know any shell.
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
	// CIDRs are the ranges for ClusterSetIPs, at most one of each IP family. None where the cluster gives them out
	// itself, by derived Services: then its Allocations are in force as they are.
	CIDRs []netip.Prefix
	// Barred namespaces have no imports here.
	Barred clustermesh.Barred
	// Mesh is false where pods of other clusters are routable without strait.
	Mesh bool
}

// Result is a plan: what the kernel should hold and what people and DNS should see. A value: never changed once made.
type Result struct {
	Desired datapath.Desired
	// Imports are sorted by service. One in which nothing has changed is the one of the plan before.
	Imports []*Import
	// Globals are the own cluster's global services, sorted.
	Globals []*Global
	// Allocations are the ClusterSetIPs as this node's cluster should have them: its leader publishes them.
	Allocations []clustermesh.Allocation
	Problems    []clustermesh.Problem
}

// Import is an import with its addresses. What would be large, and is rarely asked for, it works out when it is.
type Import struct {
	*clustermesh.Import
	IPs    []netip.Addr
	merged *clustermesh.Import // of which it was made
	demand
}

// Global is a global service of the own cluster.
type Global struct {
	*clustermesh.Global
	// Sharers are the other clusters whose endpoints it may use, sorted.
	Sharers []clustermesh.ClusterName
	demand
}

// Frontend is one address and port of an import, with the verdict on every endpoint.
type Frontend struct {
	Addr   l4.Addr
	Port   clustermesh.ServicePort
	Choice locality.Choice
}

// Plan computes the plan for one node.
func Plan(s clustermesh.State, self Self, c Config) Result { return NewPlanner(self, c).Plan(s) }

// Planner makes the plans of one node, one after the other. What costs is done again only for services in which
// something has changed; the result is that of Plan. Not for use by two goroutines at a time.
type Planner struct {
	config  Config
	stand   *stand
	serial  uint64 // of the plan
	index   index
	merged  merged
	shares  shares
	tunnels tunnels

	imports   []*Import
	globals   []*Global
	frontends frontends
}

// stand is the node and where it stands. Services that were planned from one stand share it.
type stand struct {
	self  Self
	where locality.Self
}

// NewPlanner makes a Planner that has planned nothing yet.
func NewPlanner(self Self, c Config) *Planner {
	return &Planner{config: c, stand: &stand{self: self}}
}

// Plan computes the plan for a state, of which nothing may change afterwards.
func (p *Planner) Plan(s clustermesh.State) Result {
	p.serial++
	fresh := p.settle(s)
	touched := p.index.update(s, p.stand.self)
	own := s.Records[clustermesh.Origin{Cluster: p.stand.self.Cluster}].Content
	fresh = p.merged.update(s, own.Allocations, p.config) || fresh
	p.shares.update(s, p.stand.self.Cluster)
	r := Result{Allocations: p.merged.allocations, Problems: slices.Clone(p.merged.problems)}
	for _, rec := range s.Records {
		r.Problems = append(r.Problems, rec.Problems...)
	}
	r.Imports = p.planImports(touched, fresh)
	r.Globals = p.planGlobals(touched)
	var problems []clustermesh.Problem
	r.Desired.Frontends, problems = p.frontends.update(r.Imports, r.Globals)
	r.Problems = append(r.Problems, problems...)
	for _, i := range r.Imports {
		r.Problems = append(r.Problems, i.problems...)
	}
	for _, g := range r.Globals {
		r.Problems = append(r.Problems, g.problems...)
	}
	p.tunnels.update(mesh{state: s, self: p.stand.self, config: p.config, dead: p.index.dead})
	r.Problems = clustermesh.SortProblems(append(r.Problems, p.tunnels.problems...))
	r.Desired.Peers, r.Desired.Sources, r.Desired.Routes = p.tunnels.peers, p.tunnels.sources, p.tunnels.routes
	r.Desired.Gone = p.index.gone()
	return r
}

// settle finds out where the node stands, by its own record; it reports whether that is elsewhere than before.
func (p *Planner) settle(s clustermesh.State) bool {
	where := locality.Self{Cluster: p.stand.self.Cluster, Node: p.stand.self.Node}
	if n := s.Records[p.stand.self.Origin()].Content.Node; n != nil {
		where.Locality = n.Locality
	}
	if p.stand.where == where {
		return false
	}
	p.stand = &stand{p.stand.self, where}
	return true
}
