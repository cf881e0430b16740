package plan

import (
	"fmt"
	"reflect"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

// shares are this cluster's global services, and which other clusters share theirs.
type shares struct {
	from map[clustermesh.ClusterName][]clustermesh.Global // what it was made from
	list []shared
}

// shared is a global service with the other clusters that share their endpoints, sorted by name.
type shared struct {
	*clustermesh.Global
	others []offer
}

// update rebuilds x if any cluster's global services have changed.
func (x *shares) update(s clustermesh.State, self clustermesh.ClusterName) {
	from := map[clustermesh.ClusterName][]clustermesh.Global{}
	same := x.from != nil
	for _, c := range s.Clusters() {
		from[c] = s.Records.Get(clustermesh.Origin{Cluster: c}).Content.Globals
		same = same && datapath.SameList(from[c], x.from[c])
	}
	if same && len(from) == len(x.from) {
		return
	}
	x.from = from
	others := map[clustermesh.ServiceName][]offer{}
	for _, c := range s.Clusters() {
		if c == self || len(from[self]) == 0 {
			continue
		}
		for _, g := range from[c] {
			if g.Offers(self) {
				others[g.Service] = append(others[g.Service], offer{c, g.Ports, g.Routing})
			}
		}
	}
	old := make(map[clustermesh.ServiceName]shared, len(x.list))
	for _, s := range x.list {
		old[s.Service] = s
	}
	x.list = make([]shared, 0, len(from[self]))
	for _, g := range from[self] {
		now := shared{&g, taken(g, others[g.Service])}
		if was, ok := old[g.Service]; ok && reflect.DeepEqual(was, now) {
			now = was // keep the old value if nothing in it changed
		}
		x.list = append(x.list, now)
	}
}

// taken returns the offers of the clusters whose endpoints a global service uses.
func taken(g clustermesh.Global, offers []offer) []offer {
	if len(g.From) == 0 {
		return offers
	}
	return slices.DeleteFunc(slices.Clone(offers), func(o offer) bool { return !g.Takes(o.cluster) })
}

// planGlobals plans the global services. It plans again only those in which something has changed.
func (p *planner) planGlobals(touched map[clustermesh.ServiceName]touch) []*Global {
	last := make(map[clustermesh.ServiceName]*Global, len(p.globals))
	for _, g := range p.globals {
		last[g.Service] = g
	}
	p.globals = make([]*Global, 0, len(p.shares.list))
	for _, s := range p.shares.list {
		g := last[s.Service]
		if t := touched[s.Service]; g == nil || g.Global != s.Global || g.stand != p.stand || t == changed {
			g = p.planGlobal(s, g)
		} else if t == moved {
			same := *g
			same.rows = p.index.of(s.Service)
			g = &same
		}
		p.globals = append(p.globals, g)
	}
	return p.globals
}

// planGlobal makes frontends of the addresses of this cluster's Service. Behind them are always
// this cluster's endpoints, and those of every other cluster whose Service of that name is global
// and shared, unless a policy names the clusters. Whether this cluster shares its own endpoints makes no difference.
func (p *planner) planGlobal(s shared, old *Global) *Global {
	prefer := p.Config.preference(p.Self.Cluster, p.stand.far, s.Routing)
	prefer.LocalOnly, prefer.Distribution, prefer.Affinity = s.InternalTrafficPolicy == clustermesh.PolicyLocal, s.TrafficDistribution, s.Affinity
	own := []offer{{p.Self.Cluster, s.Ports, s.Routing}}
	out := &Global{Global: s.Global, demand: demand{
		kind: "Service", service: s.Service, ips: s.IPs, ports: s.Ports, affinitySeconds: s.AffinitySeconds,
		prefer: prefer,
		offers: slices.Concat(own, s.others), stand: p.stand, rows: p.index.of(s.Service), serial: p.serial, at: p.Now, learning: p.Learning,
	}}
	out.after(old.last(p.stand), p.Config.Locality.Ramp)
	for _, o := range s.others {
		out.Sharers = append(out.Sharers, o.cluster)
		out.problems = append(out.problems, missingPorts(&out.demand, o)...)
	}
	out.plan()
	p.moving.note(&out.demand)
	return out
}

// missingPorts reports the ports for which another cluster's pods cannot be used, as Problems.
func missingPorts(d *demand, s offer) (problems []clustermesh.Problem) {
	for _, port := range d.ports {
		if slices.ContainsFunc(s.ports, port.Is) {
			continue
		}
		problems = append(problems, d.ref().Problem(clustermesh.Problem{
			Code:    problem.GlobalPortMissing,
			Field:   "spec.ports[" + port.String() + "]",
			Message: fmt.Sprintf("cluster %s shares this service without such a port: its pods are not used for it", s.cluster),
			Try:     "give the Service the same ports, by name, protocol and number, in every cluster",
			Warning: true,
		}))
	}
	return problems
}

// last returns the demand if it was planned for the same location.
func (x *Global) last(at *stand) *demand {
	if x == nil || x.stand != at {
		return nil
	}
	return &x.demand
}
