// Package plan is the bridge between the clusterset and the kernel: from the state of the
// clusterset it computes what one node's kernel should hold, and why.
//
// Input is Inputs, and the Past of the last plan; output is a Result, and the Past for the next.
// Pure: the same Inputs and Past give the same Result. What of the past decides, and what is only
// for speed, is at Past. The package imports both clustermesh and datapath and must not know any
// shell.
package plan

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/daemon/plan/mesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

// Result is a plan: what the kernel should hold, and what people and DNS should see. It is
// immutable.
type Result struct {
	Desired datapath.Desired
	// Imports are sorted by service. An import in which nothing changed is the same value as in the
	// previous plan.
	Imports []*Import
	// Globals are this cluster's global services, sorted.
	Globals []*Global
	// Allocations are the ClusterSetIPs that this node's cluster should have. Its leader publishes
	// them.
	Allocations []clustermesh.Allocation
	// Mesh is the mesh of tunnels, never nil. Desired has what the kernel gets of it.
	Mesh     *mesh.Mesh
	Problems []clustermesh.Problem
	// Dead are the nodes whose machines are dead. It must not be changed.
	Dead map[clustermesh.Origin]bool
	// Next is when to plan again, although nothing changes; 0 if there is no need.
	Next time.Duration
}

// Import is an import with its addresses. What would be large, and is rarely needed, is computed
// when asked for.
type Import struct {
	*clustermesh.Import
	IPs    []netip.Addr
	merged *clustermesh.Import // what it was made from
	demand
}

// Global is a global service of this node's cluster.
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

// Plan computes the plan for one node. Past is that of the node's last plan, or zero. The Past that
// it returns is for the next; see there for what a plan depends on besides its Inputs.
func Plan(in Inputs, past Past) (Result, Past) {
	p := after(past, in)
	r := p.plan()
	next := p.memory // a copy, because a pointer into p would keep the Inputs in memory
	return r, Past{&next}
}

func (p *planner) plan() Result {
	s := p.State
	fresh := p.settle()
	fresh = p.merged.update(s, p.Self.Cluster, p.Config) || fresh
	own, news := p.owned.update(p.Config.CIDRs, p.merged.given), p.noted.update(s)
	m := p.planMesh(p.noted.dead, own)
	touched := p.index.update(indexInputs{p.Inputs, p.noted.dead, m, news})
	p.moving = p.moving.touch(p.Now, touched)
	p.shares.update(s, p.Self.Cluster)
	r := Result{Allocations: p.merged.allocations, Problems: slices.Clone(p.merged.problems)}
	for o := range p.noted.troubled.All() {
		r.Problems = append(r.Problems, s.Records.Get(o).Problems...)
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
	r.Desired.Own = own
	r.Problems = clustermesh.SortProblems(append(r.Problems, m.Problems...))
	r.Mesh, r.Desired.Peers, r.Desired.Sources, r.Desired.Routes = m, p.tunnels.peers, p.tunnels.sources, p.tunnels.routes
	r.Desired.Gone = p.index.gone()
	r.Next, r.Dead = p.moving.next(p.Now), p.noted.dead
	return r
}

// settle reads the node's location from its own record, and reports whether it changed.
func (p *planner) settle() bool {
	where := locality.Self{Cluster: p.Self.Cluster, Node: p.Self.Node}
	if n := p.State.Records.Get(p.Self.Origin()).Content.Node; n != nil {
		where.Locality = n.Locality
	}
	if p.stand != nil && p.stand.where == where && maps.Equal(p.stand.far, p.Far) {
		return false
	}
	p.stand = &stand{p.Self, where, p.Far}
	return true
}

// tunnels are the renderings of a mesh that the kernel gets. While the mesh stays the same, they
// are the same memory.
type tunnels struct {
	of      *mesh.Mesh
	peers   []datapath.Peer
	sources datapath.Sources
	routes  []datapath.Route
}

// planMesh makes the mesh. Dead are the nodes whose machines are dead, and own are strait's own
// addresses.
func (p *planner) planMesh(dead map[clustermesh.Origin]bool, own datapath.Own) (m *mesh.Mesh) {
	m, p.mesh = mesh.Of(mesh.Inputs{
		State: p.State, Self: p.Self.Origin(), Dead: dead, On: p.Config.Mesh, Topology: p.Config.Topology, CIDRs: p.Config.CIDRs, Own: own,
		Learning: p.Learning, Host: p.Host, Device: p.Device, Remotes: p.Remotes, ClusterIPs: p.ClusterIPs, Guests: p.Guests,
	}, p.mesh)
	if m != p.tunnels.of {
		p.tunnels = tunnels{m, m.Peers(), m.Sources(), m.Routes()}
	}
	return m
}
