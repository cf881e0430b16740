package plan

import (
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
)

// planImports plans the imports. It plans again only those in which something has changed. Fresh
// says that any import may have changed, not only those whose endpoints were touched.
func (p *planner) planImports(touched map[clustermesh.ServiceName]touch, fresh bool) []*Import {
	if fresh {
		last := make(map[clustermesh.ServiceName]*Import, len(p.imports))
		for _, i := range p.imports {
			last[i.Service] = i
		}
		p.imports = make([]*Import, len(p.merged.imports))
		for n, e := range p.merged.imports {
			p.imports[n] = p.nextImport(e, last[e.Service], touched[e.Service])
		}
		return p.imports
	}
	p.imports = slices.Clone(p.imports) // the last Result holds it
	for name, t := range touched {
		n, is := slices.BinarySearchFunc(p.merged.imports, name, func(e exported, s clustermesh.ServiceName) int { return e.Service.Compare(s) })
		if is {
			p.imports[n] = p.nextImport(p.merged.imports[n], p.imports[n], t)
		}
	}
	return p.imports
}

// nextImport returns the current plan of an import. Old is its last plan, or nil if it has none.
func (p *planner) nextImport(e exported, old *Import, t touch) *Import {
	if old == nil || old.merged != e.Import || old.stand != p.stand || t == changed {
		return p.planImport(e, old)
	}
	if t == moved {
		i := *old
		i.rows = p.index.of(e.Service)
		return &i
	}
	return old
}

// planImport makes the frontends of one import: each address with each port.
func (p *planner) planImport(e exported, old *Import) *Import {
	prefer := p.Config.preference(p.Self.Cluster, p.stand.far, e.routing(p.Self.Cluster))
	prefer.LocalOnly, prefer.Distribution = e.InternalTrafficPolicy == clustermesh.PolicyLocal, e.TrafficDistribution
	out := &Import{Import: e.Import, IPs: e.ips, merged: e.Import, demand: demand{
		kind: "ServiceImport", service: e.Service, ports: e.Ports, affinitySeconds: e.AffinitySeconds,
		prefer: prefer,
		offers: e.offers, stand: p.stand, rows: p.index.of(e.Service), serial: p.serial, at: p.Now, learning: p.Learning,
	}}
	out.after(old.last(p.stand), p.Config.Locality.Ramp)
	if e.silent {
		members, _ := out.admit()
		guessed := *e.Import
		guessed.Families = familiesOf(members, e.Families)
		out.Import = &guessed
	}
	if e.Type != clustermesh.Headless {
		out.ips = e.ips
		out.plan()
		p.moving.note(&out.demand)
	}
	return out
}

// last returns the demand if it was planned for the same location.
func (x *Import) last(at *stand) *demand {
	if x == nil || x.stand != at {
		return nil
	}
	return &x.demand
}

// Unserved returns the imports that have frontends, and nothing behind any of them in the clusterset. With
// internalTrafficPolicy Local, only pods of the own node could be behind them, and other nodes can have some.
func (r Result) Unserved() (out []*Import) {
	for _, i := range r.Imports {
		if len(i.desired) > 0 && i.InternalTrafficPolicy != clustermesh.PolicyLocal && !slices.ContainsFunc(i.desired, func(f datapath.Frontend) bool { return len(f.Backends) > 0 }) {
			out = append(out, i)
		}
	}
	return out
}
