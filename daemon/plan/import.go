package plan

import (
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
)

// planImports plans the imports, those in which something has changed anew.
func (p *Planner) planImports(touched map[clustermesh.ServiceName]touch) []*Import {
	out := make([]*Import, 0, len(p.merged.imports))
	for _, e := range p.merged.imports {
		old, ips := p.imports[e.Service], p.merged.ips[e.Service]
		switch {
		case old == nil || old.merged != e.Import || !slices.Equal(old.IPs, ips) || old.stand != p.stand || touched[e.Service] == changed:
			out = append(out, p.planImport(e, ips))
		case touched[e.Service] == moved:
			i := *old
			i.rows = p.index.rows[e.Service]
			out = append(out, &i)
		default:
			out = append(out, old)
		}
	}
	p.imports = make(map[clustermesh.ServiceName]*Import, len(out))
	for _, i := range out {
		p.imports[i.Service] = i
	}
	return out
}

// planImport makes the frontends of one import: each address with each port.
func (p *Planner) planImport(e exported, ips []netip.Addr) *Import {
	out := &Import{Import: e.Import, IPs: ips, merged: e.Import, demand: demand{
		kind: "ServiceImport", service: e.Service, ports: e.Ports, affinitySeconds: e.AffinitySeconds,
		prefer: locality.Preference{LocalOnly: e.InternalTrafficPolicy == clustermesh.PolicyLocal, Distribution: e.TrafficDistribution},
		offers: e.offers, stand: p.stand, rows: p.index.rows[e.Service], serial: p.serial,
	}}
	if e.silent {
		members, _ := out.admit()
		guessed := *e.Import
		guessed.Families = familiesOf(members, e.Families)
		out.Import = &guessed
	}
	if e.Type != clustermesh.Headless {
		out.ips = ips
		out.plan()
	}
	return out
}
