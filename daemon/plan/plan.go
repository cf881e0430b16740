// Package plan is the bridge between the clusterset and the kernel: from the state of the
// clusterset it computes what one node's kernel should hold, and why.
//
// Input is State, Self, Host and Config; output is a Result. Pure: the same input always gives the same
// output. A Planner remembers its last plan to be faster, and so that nodes keep what they had when others
// claim it. The package imports both clustermesh and datapath and must not know any shell.
package plan

import (
	"maps"
	"net/netip"
	"slices"
	"time"

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

// Origin returns the node as a writer of records.
func (s Self) Origin() clustermesh.Origin {
	return clustermesh.Origin{Cluster: s.Cluster, Node: s.Node}
}

// Config is what a plan depends on besides the state.
type Config struct {
	// CIDRs are the ranges for ClusterSetIPs, at most one of each IP family. There are none if the
	// cluster allocates them itself, by derived Services: then its Allocations are used as they
	// are.
	CIDRs []netip.Prefix
	// Barred namespaces have no imports here.
	Barred clustermesh.Barred
	// Mesh is false if pods of other clusters are routable without strait.
	Mesh     bool
	Locality Locality
}

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
	// Ends are all nodes of the clusterset as WireGuard peers, sorted by origin.
	Ends []End
	// Guests are the machines outside every cluster that this cluster knows of, sorted by name.
	Guests   []Admitted
	Problems []clustermesh.Problem
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

// Plan computes the plan for one node.
func Plan(s clustermesh.State, self Self, c Config) Result { return NewPlanner(self, c).Plan(s) }

// Planner makes successive plans for one node. It repeats expensive work only for services in which
// something has changed; the result is the same as that of Plan. It is not safe for concurrent use.
type Planner struct {
	config   Config
	host     Host
	now      time.Time
	learning bool
	moving   moving
	stand    *stand
	serial   uint64 // number of the plan
	index    index
	merged   merged
	shares   shares
	tunnels  tunnels

	far        map[clustermesh.ClusterName]uint32
	remotes    []Remote
	guests     []Guest
	clusterIPs []netip.Prefix
	imports    []*Import
	globals    []*Global
	frontends  frontends
	owned      owned
}

// stand is the node and its location. Services planned from the same location share a stand.
type stand struct {
	self  Self
	where locality.Self
	far   map[clustermesh.ClusterName]uint32
}

// NewPlanner makes a Planner that has planned nothing yet.
func NewPlanner(self Self, c Config) *Planner {
	return &Planner{config: c, stand: &stand{self: self}, index: index{self: self, mesh: c.Mesh}, moving: newMoving()}
}

// At says what time it is for the next plan.
func (p *Planner) At(now time.Time) { p.now = now }

// Learning says whether the next plans are made from only part of what there is. What such a plan lacks
// is unknown, not absent, so it does not begin a ramp when a later plan has it; nor had anybody what such a
// plan gave to them, when another claims it.
func (p *Planner) Learning(l bool) { p.learning = l }

// On says what the next plans must know about the machine.
func (p *Planner) On(h Host) { p.host = h }

// Far says how far away clusters are that are not among the nearest, in steps, for the next plans. It
// counts where the configuration gives no costs. The map must not be changed afterwards.
func (p *Planner) Far(steps map[clustermesh.ClusterName]uint32) { p.far = steps }

// Fault is what is wrong with the tunnel to a node; see locality.Candidate.
type Fault struct {
	Why      string
	Impaired bool
}

// Faults says for the next plans which nodes' tunnels do not carry what they should. The map must not be
// changed afterwards.
func (p *Planner) Faults(nodes map[clustermesh.Origin]Fault) { p.index.faults = nodes }

// Plan computes the plan for a state, which must not change afterwards.
func (p *Planner) Plan(s clustermesh.State) Result {
	p.serial++
	fresh := p.settle(s)
	fresh = p.merged.update(s, p.stand.self.Cluster, p.config) || fresh
	own, dead := p.owned.update(p.config.CIDRs, p.merged.given), deadNodes(s)
	p.tunnels.update(mesh{state: s, self: p.stand.self, config: p.config, learning: p.learning, dead: func(o clustermesh.Origin) bool { return dead[o] }, host: p.host, own: own, remotes: p.remotes, clusterIPs: p.clusterIPs, guests: p.guests})
	p.index.places = p.tunnels.places
	touched := p.index.update(s, dead)
	p.moving.touch(p.now, touched)
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
	r.Desired.Own = own
	r.Problems = clustermesh.SortProblems(append(r.Problems, p.tunnels.problems...))
	r.Desired.Peers, r.Desired.Sources, r.Desired.Routes = p.tunnels.peers, p.tunnels.sources, p.tunnels.routes
	r.Ends, r.Guests = p.tunnels.ends, p.tunnels.admitted
	r.Desired.Gone = p.index.gone()
	r.Next = p.moving.next(p.now)
	return r
}

// settle reads the node's location from its own record, and reports whether it changed.
func (p *Planner) settle(s clustermesh.State) bool {
	where := locality.Self{Cluster: p.stand.self.Cluster, Node: p.stand.self.Node}
	if n := s.Records[p.stand.self.Origin()].Content.Node; n != nil {
		where.Locality = n.Locality
	}
	if p.stand.where == where && maps.Equal(p.stand.far, p.far) {
		return false
	}
	p.stand = &stand{p.stand.self, where, p.far}
	return true
}
