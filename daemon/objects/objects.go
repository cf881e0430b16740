// Package objects decides what the leader's writer is given: the imports, global services, exports and
// Problems that become objects of the cluster's API server.
//
// Inputs are what the source and all clusters published, and the plan made from that; output is an
// mcs.View. Pure. It must not know an API server; package mcs decides which objects follow.
package objects

import (
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/daemon/plan"
)

// View returns what the leader of a cluster wants in its API server, from its source,
// what all clusters published, and the plan made from that. Call it only after the source has been
// read and gossip is synced: before that, what is missing is merely unknown.
func View(c mcs.Config, cluster clustermesh.ClusterName, members []clustermesh.ClusterName, local clustermesh.Local, s clustermesh.State, r plan.Result) mcs.View {
	v := mcs.View{
		Cluster: cluster, Config: c, Clusters: mcs.KnowledgeOf(cluster, s), Members: members,
		Imports: make([]mcs.Source[mcs.Import], 0, len(r.Imports)), Globals: slicedGlobals(local.Globals, r.Globals), Exports: local.ExportStatus,
	}
	if local.Namespaces != nil {
		v.Namespaces = make(map[string]bool, len(local.Namespaces))
		for _, ns := range local.Namespaces {
			v.Namespaces[ns] = true
		}
	}
	v.Problems = eventProblems(local.Problems)
	for _, i := range r.Imports {
		v.Imports = append(v.Imports, planned{i, cluster})
	}
	v.Locals = locals(local.ExportStatus, r)
	return v
}

// planned computes the contents of an import's objects only when they are written. For all imports
// at once they would be as large as everything that is known.
type planned struct {
	*plan.Import
	cluster clustermesh.ClusterName // whose view it is
}

// Name implements mcs.Source.
func (p planned) Name() clustermesh.ServiceName { return p.Service }

// Make implements mcs.Source.
func (p planned) Make() mcs.Import {
	out := mcs.Import{Import: *p.Import.Import, IPs: p.IPs, Endpoints: p.Endpoints(), Backends: p.backends()}
	switch {
	case !slices.Contains(p.Exporters, p.cluster):
	case p.Type == clustermesh.Headless:
		out.Local = headlessLocal(p.cluster, out.Endpoints)
	default:
		out.Local = localOf(p.Outlook())
	}
	return out
}

// Same implements mcs.Source.
func (p planned) Same(other mcs.Source[mcs.Import]) bool {
	o, is := other.(planned)
	return is && p.Version() == o.Version()
}

// slicedGlobals returns the planned global services that ask for EndpointSlices, which only the source
// knows. Both lists are sorted.
func slicedGlobals(globals []clustermesh.Global, plans []*plan.Global) (out []mcs.Source[mcs.Global]) {
	for _, g := range globals {
		if g.Slices == nil {
			continue
		}
		i, is := slices.BinarySearchFunc(plans, g.Service, func(p *plan.Global, s clustermesh.ServiceName) int { return p.Service.Compare(s) })
		if is {
			out = append(out, sliced{plans[i], *g.Slices})
		}
	}
	return out
}

// sliced is planned for a global service.
type sliced struct {
	*plan.Global
	asks clustermesh.GlobalSlices
}

// Name implements mcs.Source.
func (s sliced) Name() clustermesh.ServiceName { return s.Service }

// Make implements mcs.Source.
func (s sliced) Make() mcs.Global {
	return mcs.Global{Service: s.Service, Slices: s.asks, TrafficDistribution: s.TrafficDistribution, Endpoints: s.Endpoints()}
}

// Same implements mcs.Source.
func (s sliced) Same(other mcs.Source[mcs.Global]) bool {
	o, is := other.(sliced)
	return is && s.Version() == o.Version() && s.asks.Equal(&o.asks)
}

func (p planned) backends() (out []mcs.Backend) {
	for _, c := range p.ForCluster() {
		for _, v := range c.Choice.Verdicts {
			if v.Weight > 0 {
				out = append(out, backend(c.Port, v))
			}
		}
	}
	return out
}

func backend(port clustermesh.ServicePort, v locality.Verdict) mcs.Backend {
	return mcs.Backend{
		Port: port, Addr: v.Addr, Cluster: v.Cluster, Node: v.Node, Zone: v.Locality.Zone,
		Ready: v.Ready, Serving: v.Serving, Terminating: v.Terminating,
	}
}

// eventProblems returns the Problems to report as Events, by service: those of Services, of exports and
// imports of other API groups, and of the spec of a ServiceExport. All other Problems of
// ServiceExports are reported in their conditions.
func eventProblems(ps []clustermesh.Problem) map[clustermesh.ServiceName][]clustermesh.Problem {
	out := map[clustermesh.ServiceName][]clustermesh.Problem{}
	for _, p := range ps {
		kind := p.Ref.Kind
		other := strings.HasPrefix(kind, "ServiceExport.") || strings.HasPrefix(kind, "ServiceImport.")
		if kind != "Service" && !other && !(kind == "ServiceExport" && strings.HasPrefix(p.Field, "spec.")) {
			continue
		}
		name := clustermesh.ServiceName{Namespace: p.Ref.Namespace, Name: p.Ref.Name}
		out[name] = append(out[name], p)
	}
	return out
}
